package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

type inspectCommand struct {
	What  string `arg:"" optional:"" placeholder:"GENERATION|FILE" help:"Name of a generation (published version), or path of a bitmap file. Default: the generation that services use."`
	At    string `placeholder:"LOCATION" help:"Location of the published segments: a directory or s3://bucket/prefix."`
	JSON  bool   `name:"json" help:"Print the report as JSON."`
	Place place  `embed:""`
}

// The type inspection is the report of `segmentbuild inspect` about a generation (published version) or a bitmap file.
type inspection struct {
	Generation string             `json:"generation,omitempty"`
	Manifest   *segments.Manifest `json:"manifest,omitempty"`
	// CheckedAt is the time of the last complete build. If this build had other content than the generation, CheckedAt
	// is nil.
	CheckedAt *time.Time  `json:"checked_at,omitempty"`
	Segments  []inspected `json:"segments"`
	// Overlaps[i][j] is the number of users who are in segment i and in segment j.
	Overlaps [][]uint64     `json:"overlaps"`
	Sets     []inspectedSet `json:"sets,omitempty"`
}

// An inspectedSet describes a set. A set may have users in common with every segment and every other set.
type inspectedSet struct {
	inspected
	OnlyGrows bool    `json:"only_grows,omitempty"`
	MaxLoss   float64 `json:"max_loss,omitempty"` // per 100 users, if the set only grows
	// AsOf is the time up to which the set reflects all changes by API calls. AmendedAsOf is the AsOf of the set's
	// newest amend (publish of some sets).
	AsOf        time.Time `json:"as_of,omitzero"`
	AmendedAsOf time.Time `json:"amended_as_of,omitzero"`
}

type inspected struct {
	Name         string         `json:"name"`
	Users        uint64         `json:"users"`
	Min          *uint32        `json:"min,omitempty"`
	Max          *uint32        `json:"max,omitempty"`
	SizeBytes    int64          `json:"size_bytes"`
	BytesPerUser float64        `json:"bytes_per_user"`
	Containers   map[string]int `json:"containers"`
	SHA256       string         `json:"sha256"`
}

// The method Run prints the content of a generation (sizes, overlaps, sets) or of a bitmap file.
func (c *inspectCommand) Run(ctx context.Context, on *terminal.Streams) error {
	report, err := c.inspect(ctx, on)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.JSON(on.Out, report)
	}
	return report.print(on.Out)
}

func (c *inspectCommand) inspect(ctx context.Context, on *terminal.Streams) (*inspection, error) {
	if isFile(c.What) {
		raw, err := os.ReadFile(c.What)
		if err != nil {
			return nil, err
		}
		b, err := bitmap.Read(raw)
		if err != nil {
			return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: %w", c.What, err))
		}
		return inspect(&publish.Candidate{Names: []string{filepath.Base(c.What)}, Bitmaps: []*bitmap.Bitmap{b}}), nil
	}
	if c.At == "" {
		return nil, terminal.Misuse(errors.New(
			"--at LOCATION is required to inspect a generation (published version)"))
	}
	ctx, cancel, location, err := c.Place.open(ctx, on, c.At)
	if err != nil {
		return nil, err
	}
	defer cancel()
	g, err := readGeneration(ctx, location, c.What)
	if err != nil {
		return nil, timedOut(ctx, err)
	}
	report := inspect(publish.CandidateOf(g))
	report.Generation, report.Manifest = g.Manifest.Generation, g.Manifest
	checked, err := segments.ReadChecked(ctx, location)
	if err == nil && checked.Generation == report.Generation {
		report.CheckedAt = &checked.CheckedAt
	}
	return report, timedOut(ctx, err)
}

func isFile(name string) bool {
	stat, err := os.Stat(name)
	return name != "" && err == nil && !stat.IsDir()
}

// readGeneration reads a generation (published version) from a location. The names "" and "live" stand for the live
// generation.
func readGeneration(ctx context.Context, location objects.Location, name string) (*segments.Generation, error) {
	m, err := readManifest(ctx, location, name)
	if err != nil {
		return nil, err
	}
	return segments.ReadGeneration(ctx, location, m.Generation)
}

func readManifest(ctx context.Context, location objects.Location, name string) (*segments.Manifest, error) {
	if name == "" || name == "live" {
		m, err := segments.ReadLiveManifest(ctx, location)
		if errors.Is(err, segments.ErrNothingLive) {
			return nil, notThere(fmt.Errorf("no segments have been published to %s: %w", location.Name(), err))
		}
		return m, err
	}
	return namedManifest(ctx, location, name)
}

// namedManifest reads the manifest of the named generation (published version). If the location exists but lacks the
// named generation, the error has the exit status for wrong usage.
func namedManifest(ctx context.Context, location objects.Location, name string) (*segments.Manifest, error) {
	m, err := segments.ReadManifest(ctx, location, name)
	if !segments.IsGeneration(name) {
		return nil, terminal.Misuse(err)
	}
	if !errors.Is(err, objects.ErrNotFound) {
		return m, err
	}
	if missing := mustBeThere(ctx, location); missing != nil {
		return nil, missing
	}
	return nil, terminal.Misuse(err)
}

func newInspected(s *segments.Segment, b *bitmap.Bitmap) inspected {
	row := inspected{Name: s.Name, Users: s.Cardinality, Min: s.Min, Max: s.Max, SizeBytes: s.SizeBytes,
		Containers: b.Containers(), SHA256: s.SHA256}
	if s.Cardinality > 0 {
		row.BytesPerUser = float64(s.SizeBytes) / float64(s.Cardinality)
	}
	return row
}

func inspect(c *publish.Candidate) *inspection {
	report := &inspection{}
	for i, s := range c.Describe() {
		report.Segments = append(report.Segments, newInspected(&s, c.Bitmaps[i]))
		report.Overlaps = append(report.Overlaps, make([]uint64, len(c.Names)))
		report.Overlaps[i][i] = s.Cardinality
	}
	for _, o := range c.Overlaps() {
		i, j := slices.Index(c.Names, o.A), slices.Index(c.Names, o.B)
		report.Overlaps[i][j], report.Overlaps[j][i] = o.Users, o.Users
	}
	for i, s := range c.DescribeSets() {
		report.Sets = append(report.Sets, inspectedSet{newInspected(&s.Segment, c.Sets[i].Bitmap), s.OnlyGrows,
			s.MaxLoss, s.AsOf, s.AmendedAsOf})
	}
	return report
}

// The method "columns" returns the cells of a segment's row in the report table, except the name.
func (s *inspected) columns() []any {
	return []any{s.Users, bound(s.Min), bound(s.Max), s.SizeBytes, fmt.Sprintf("%.3f", s.BytesPerUser),
		s.Containers["array"], s.Containers["bitmap"], s.Containers["run"]}
}

func (r *inspection) printSets(w io.Writer, sizeColumns []any) error {
	var table [][]any
	for _, s := range r.Sets {
		table = append(table, slices.Concat([]any{s.Name}, s.columns(), []any{growth(s.OnlyGrows, s.MaxLoss)}))
	}
	if err := printSetTable(w, append([]any{"set"}, sizeColumns...), table); err != nil || r.Manifest == nil {
		return err
	}
	return printAsOf(w, r.Manifest)
}

func (r *inspection) print(w io.Writer) error {
	if r.Manifest != nil {
		fmt.Fprintf(w, "generation %s, created %s by %s\n", r.Generation,
			r.Manifest.CreatedAt.Format("2006-01-02 15:04:05 MST"), terminal.Escape(r.Manifest.ToolVersion))
		switch reason := terminal.Escape(r.Manifest.Reason); {
		case strings.HasPrefix(reason, publish.RollbackReason):
			fmt.Fprintln(w, reason)
		case reason != "":
			fmt.Fprintf(w, "forced: %s\n", reason)
		}
		for _, a := range r.Manifest.Accepted {
			fmt.Fprintf(w, "accepted at %s: %s: %s: %d of %d users left (%s)\n",
				a.At.Format(time.RFC3339), cmp.Or(a.Set, a.Segment), a.Change, a.Removed, a.Before,
				terminal.Escape(a.Reason))
		}
		if r.CheckedAt != nil {
			fmt.Fprintf(w, "checked by a build: %s\n", r.CheckedAt.Format(time.RFC3339))
		}
	}
	sizeColumns := []any{"users", "lowest", "highest", "bytes", "bytes/user", "arrays", "bitmaps", "runs"}
	sizes := [][]any{append([]any{"segment"}, sizeColumns...)}
	var both [][]any
	for i, s := range r.Segments {
		sizes = append(sizes, append([]any{s.Name}, s.columns()...))
		row := []any{s.Name}
		for _, n := range r.Overlaps[i] {
			row = append(row, n)
		}
		both = append(both, row)
	}
	if err := terminal.Table(w, terminal.Right, sizes...); err != nil {
		return err
	}
	if len(r.Segments) > 1 {
		fmt.Fprintln(w, "users in both:")
		if err := terminal.Table(w, terminal.Right, both...); err != nil {
			return err
		}
	}
	return r.printSets(w, sizeColumns)
}
