// Command show prints the same instant in some time zones, with package zones and with package time.
package main

import (
	"fmt"
	"os"
	"time"

	"capper/internal/zones"
)

func main() {
	at := time.Date(2026, 11, 24, 14, 0, 0, 0, time.UTC)
	for _, name := range []string{"Asia/Singapore", "Europe/Berlin", "UTC"} {
		ours, err := zones.Load(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		machine, err := time.LoadLocation(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s %s (time: %s)\n", name, at.In(ours).Format("15:04"), at.In(machine).Format("15:04"))
	}
}
