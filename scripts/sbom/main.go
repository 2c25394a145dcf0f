// Command sbom writes a software bill of materials for Go programs to standard output, in the format CycloneDX 1.5 as
// JSON. The bill of materials lists all Go modules in the programs, with the versions and hashes that the linker
// recorded. For the same programs, the bill of materials is always the same, byte for byte.
//
//	go run ./scripts/sbom -version v1.2.3 -date 2026-11-20T09:12:44Z PROGRAM…
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom: error:", err)
		os.Exit(1)
	}
}

type bill struct {
	Schema     string      `json:"$schema"`
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
	// The bill lists all modules as direct dependencies, because the linker does not record the dependencies between
	// modules.
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Ref      string    `json:"bom-ref"`
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	PURL     string    `json:"purl,omitempty"`
	Hashes   []hash    `json:"hashes,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

// A hash is the hash of a Go module's files, as in go.sum.
type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version, date := flags.String("version", "unknown", "of the programs"), flags.String("date", "", "of their commit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	modules := map[string]component{}
	for _, program := range flags.Args() {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("read the modules of %s: %w", filepath.Base(program), err)
		}
		add(modules, info, *version)
	}
	if len(modules) == 0 {
		return fmt.Errorf("usage: sbom needs at least one program to describe")
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(describe(modules, *version, *date))
}

// The function "add" adds the Go modules in a program, including the standard library, to the map of modules. A Go
// module that is replaced by a directory belongs to this repository, and gets the version of the repository.
func add(modules map[string]component, info *debug.BuildInfo, version string) {
	note := func(path, version, sum string) {
		purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
		modules[path] = component{Ref: purl, Type: "library", Name: path, Version: version, PURL: purl,
			Hashes: hashes(sum)}
	}
	note("std", info.GoVersion, "")
	for _, dep := range info.Deps {
		switch {
		case dep.Replace == nil:
			note(dep.Path, dep.Version, dep.Sum)
		case strings.HasPrefix(dep.Replace.Path, "."):
			note(dep.Path, version, "")
		default:
			note(dep.Replace.Path, dep.Replace.Version, dep.Replace.Sum)
		}
	}
}

func hashes(sum string) []hash {
	bytes, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil || len(bytes) == 0 {
		return nil
	}
	return []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(bytes)}}
}

func describe(modules map[string]component, version, date string) bill {
	ours := component{Ref: "capper@" + version, Type: "application", Name: "capper", Version: version,
		Licenses: make([]license, 1)}
	ours.Licenses[0].License.ID = "Apache-2.0"
	components := slices.SortedFunc(maps.Values(modules),
		func(a, b component) int { return cmp.Compare(a.Name, b.Name) })
	all := dependency{Ref: ours.Ref}
	for _, c := range components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	return bill{
		Schema: "http://cyclonedx.org/schema/bom-1.5.schema.json", Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata: metadata{Timestamp: date, Component: ours}, Components: components, Dependencies: []dependency{all},
	}
}
