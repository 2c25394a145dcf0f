// Command compose validates a compose file with the library of docker compose, in the same way as `docker compose
// config`. If the compose file is valid according to the schema of the specification, the command prints the file as
// JSON, with all default values.
//
//	compose FILE
//
// Command compose is a separate Go module, because no other code needs the library of docker compose.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: compose FILE")
	}
	options, err := cli.NewProjectOptions(args)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
