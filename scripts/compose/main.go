// Command compose reads a compose file as `docker compose config` does, with the library that docker
// compose is made of, and prints what it means as JSON: every default in place, and only if the
// file is held by the specification's schema.
//
//	compose FILE
//
// It is a module of its own, because nothing else needs the library.
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
