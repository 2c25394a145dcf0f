package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"capper/internal/segments"
	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/format"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// buildReport is the report of the commands build and amend (publish of some sets). The commands print the report as
// tables, or with --json as JSON.
type buildReport struct {
	// Status is one of these texts: published, sets published, unchanged, dry run, overlap, bad input, refused, lost
	// the race, on hold, failed.
	Status     string `json:"status"`
	Location   string `json:"location"`
	Generation string `json:"generation,omitempty"`
	Before     string `json:"before,omitempty"` // name of the previous live generation
	// If no generation (published version) is live, the guard compares the build with the newest generation.
	// ComparedWith is then the name of the newest generation.
	ComparedWith string `json:"compared_with,omitempty"`
	// IDs describes user ids that are not dense (32-bit integers).
	IDs      *idsReport        `json:"ids,omitempty"`
	Segments []builtSegment    `json:"segments,omitempty"`
	Sets     []builtSet        `json:"sets,omitempty"`
	Overlaps []publish.Overlap `json:"overlaps,omitempty"` // common users of segments
	// FurtherZones is the number of users who are in more than one time zone set.
	FurtherZones uint64           `json:"further_zones,omitempty"`
	Changes      []publish.Change `json:"changes,omitempty"`
	SetChanges   []publish.Change `json:"set_changes,omitempty"`
	// NoSegment counts users who left all segments, and users who joined a segment after being in none.
	NoSegment *publish.NoSegment `json:"no_segment,omitempty"`
	Week      *publish.Drift     `json:"week,omitempty"`
	Refusals  []string           `json:"refusals,omitempty"`
	Forced    bool               `json:"forced,omitempty"`
	// Accepted lists the changes that the flag --accept has permitted.
	Accepted []segments.Accepted `json:"accepted,omitempty"`
	// If the build published nothing but the sets that grew, SetsThatGrew lists the changes of these sets.
	SetsThatGrew []publish.Grown `json:"sets_that_grew,omitempty"`
	// Amended lists the sets that an amend (publish of some sets) has replaced. An amend does not change any other set
	// or segment.
	Amended []string `json:"amended,omitempty"`
	// Kept lists the sets that keep users of an amend (publish of some sets), because the build's input files are older
	// than the amend.
	Kept []publish.Kept `json:"kept,omitempty"`
	// Warnings lists problems that did not prevent the build, such as users who leave a set.
	Warnings []string `json:"warnings,omitempty"`
	// UploadedBytes is the total size of the uploaded bitmaps and id files. A build does not upload bitmaps and id
	// files of the live generation again.
	UploadedBytes int64               `json:"uploaded_bytes"`
	Files         []ingest.FileReport `json:"files,omitempty"`
	// LeftOut lists files that match a pattern of the inputs, but whose names are not those of data files: _SUCCESS,
	// .crc and hidden files. The build skips such files.
	LeftOut       []string     `json:"left_out,omitempty"`
	BadRows       int64        `json:"bad_rows"`
	BadRowSamples []format.Bad `json:"bad_row_samples,omitempty"`

	forcing bool // --force overrides rejections
	dryRun  bool // nothing is published
	held    bool // publishing is on hold

	idWarnings []string // printed among the Warnings
}

type builtSegment struct {
	Name      string  `json:"name"`
	Users     uint64  `json:"users"`
	SizeBytes int64   `json:"size_bytes"`
	SHA256    string  `json:"sha256"`
	Min       *uint32 `json:"min,omitempty"`
	Max       *uint32 `json:"max,omitempty"`
}

// builtSet describes a set of the new generation (published version) in the report.
type builtSet struct {
	builtSegment
	OnlyGrows bool      `json:"only_grows,omitempty"`
	MaxLoss   float64   `json:"max_loss,omitempty"` // per 100 users, if the set only grows
	AsOf      time.Time `json:"as_of,omitzero"`
}

func newBuiltSegment(s *segments.Segment) builtSegment {
	return builtSegment{Name: s.Name, Users: s.Cardinality, SizeBytes: s.SizeBytes, SHA256: s.SHA256, Min: s.Min,
		Max: s.Max}
}

func (r *buildReport) noteResult(result *ingest.Result) {
	if result == nil {
		return
	}
	r.Overlaps, r.Files, r.LeftOut = result.Overlaps, result.Files, result.LeftOut
	r.BadRows, r.BadRowSamples = result.BadRows, result.Samples
	r.noteIDs(result, result.Candidate)
	for _, s := range result.Candidate.Describe() {
		r.Segments = append(r.Segments, newBuiltSegment(&s))
	}
	r.noteSets(result.Candidate)
	r.FurtherZones = result.Candidate.FurtherZones()
}

// noteSets adds the sets of the new generation (published version) to the report. noteSets runs before and after the
// guard (the check against the live generation), because the guard determines which sets only grow.
func (r *buildReport) noteSets(c *publish.Candidate) {
	if len(r.Sets) == 0 {
		for _, s := range c.DescribeSets() {
			r.Sets = append(r.Sets, builtSet{builtSegment: newBuiltSegment(&s.Segment), AsOf: s.AsOf})
		}
	}
	for i, s := range c.Sets {
		r.Sets[i].OnlyGrows, r.Sets[i].MaxLoss = s.Growth.OnlyGrows, s.Growth.MaxLoss
	}
}

// noteFindings adds the findings of the guard (changes and refusals) to the report.
func (r *buildReport) noteFindings(found *publish.Findings) {
	r.ComparedWith = found.ComparedWith
	r.Changes, r.NoSegment, r.SetChanges, r.Week = found.Changes, found.NoSegment, found.Sets, found.Drift
	r.Refusals = found.Refusals
}

// noteFailure derives the status of the report from the error with which the build ended.
func (r *buildReport) noteFailure(err error) {
	switch statusOf(err) {
	case terminal.BadInput:
		r.Status = "bad input"
	case terminal.Undecided:
		r.Status = "overlap"
	case terminal.LostRace:
		r.Status = "lost the race"
	case terminal.OnHold:
		r.Status = "on hold"
	case terminal.Refused:
		r.Status = "refused"
	}
}

func (r *buildReport) notePublished(p *publish.Published) {
	r.Status, r.Generation, r.UploadedBytes = "published", p.Manifest.Generation, p.UploadedBytes
	if p.Unchanged {
		r.Status = "unchanged"
	}
}

// setsPublished is the status in the report of a build that has published nothing but sets that only grow.
const setsPublished = "sets published"

// printAs writes the report of a build as JSON or as text.
func (r *buildReport) printAs(w io.Writer, asJSON bool) error {
	if asJSON {
		return terminal.JSON(w, r)
	}
	return r.print(w)
}

// The method "print" writes the report of a build as text.
func (r *buildReport) print(w io.Writer) error {
	err := errors.Join(r.printSegments(w), r.printSets(w))
	if r.IDs != nil {
		fmt.Fprintf(w, "ids: %d of the kind %s (check %s), dictionary of %d bytes, names of %d bytes\n", r.IDs.IDs,
			r.IDs.Kind, r.IDs.Check, r.IDs.DictionaryBytes, r.IDs.NamesBytes)
	}
	for _, s := range r.Segments {
		if s.Users == 0 {
			fmt.Fprintf(w, "warning: segment %q has no users\n", s.Name)
		}
	}
	for _, s := range r.Sets {
		if s.Users == 0 {
			fmt.Fprintf(w, "warning: set %q has no users\n", s.Name)
		}
	}
	for _, o := range r.Overlaps {
		fmt.Fprintf(w, "overlap: %s and %s: %s, such as %s\n", o.A, o.B, terminal.Count(o.Users, "user", "users"),
			o.SampleText())
	}
	r.printZones(w)
	r.printBadRows(w)
	if n := len(r.LeftOut); n > 0 {
		fmt.Fprintf(w, "skipped: %s, such as %s\n", terminal.Count(n, "file whose name is not that of a data file",
			"files whose names are not those of data files"), r.LeftOut[0])
	}
	r.printFiles(w)
	for _, f := range r.Files {
		if f.Header != "" {
			fmt.Fprintf(w, "header of %s: %s\n", f.File, f.Header)
		}
		if m := f.Multiline; m != nil {
			fmt.Fprintf(w, "rows over several lines in %s: %s\n", f.File, m)
		}
	}
	if r.ComparedWith != "" {
		fmt.Fprintf(w, "no generation is live: compared with the newest one, %s\n", r.ComparedWith)
	}
	return errors.Join(err, printChanges(w, r.Changes, r.NoSegment), printSetChanges(w, r.SetChanges),
		printDrift(w, r.Week), r.printEnd(w))
}

// printZones prints the number of users who are in more than one time zone set.
func (r *buildReport) printZones(w io.Writer) {
	if r.FurtherZones > 0 {
		fmt.Fprintf(w, "time zones: %s in more than one set of %s, and the first set in the order above counts\n",
			terminal.Count(r.FurtherZones, "user is", "users are"), segments.ZonePrefix)
	}
}

func (r *buildReport) printSegments(w io.Writer) error {
	if len(r.Segments) == 0 {
		return nil
	}
	table := [][]any{{"segment", "users", "bytes", "lowest", "highest"}}
	for _, s := range r.Segments {
		table = append(table, []any{s.Name, s.Users, s.SizeBytes, bound(s.Min), bound(s.Max)})
	}
	return terminal.Table(w, terminal.Right, table...)
}

// shownSets is the maximum number of sets in the text report. The JSON report contains all sets.
const shownSets = 60

func (r *buildReport) printSets(w io.Writer) error {
	var table [][]any
	for _, s := range r.Sets {
		table = append(table, []any{s.Name, s.Users, s.SizeBytes, bound(s.Min), bound(s.Max),
			growth(s.OnlyGrows, s.MaxLoss)})
	}
	return printSetTable(w, []any{"set", "users", "bytes", "lowest", "highest"}, table)
}

// printSetTable prints the first rows of a table of sets. If the table has no rows, printSetTable prints nothing.
func printSetTable(w io.Writer, head []any, table [][]any) error {
	if len(table) == 0 {
		return nil
	}
	err := terminal.Table(w, terminal.Right, slices.Concat([][]any{head}, table[:min(len(table), shownSets)])...)
	if more := len(table) - shownSets; more > 0 {
		_, err = fmt.Fprintf(w, "and %d more sets: --json lists all\n", more)
	}
	return err
}

// The function "growth" returns a text for a set that only grows, with the percentage of users who may leave. For other
// sets, the function "growth" returns "".
func growth(onlyGrows bool, maxLoss float64) string {
	switch {
	case !onlyGrows:
		return ""
	case maxLoss == 0:
		return "only grows (no user may leave)"
	}
	return fmt.Sprintf("only grows (%g %% may leave)", maxLoss)
}

// shownFiles is the maximum number of input files in the text report. The JSON report contains all input files.
const shownFiles = 20

// printFiles prints the number of rows in each input file.
func (r *buildReport) printFiles(w io.Writer) {
	for _, f := range r.Files[:min(len(r.Files), shownFiles)] {
		column, about := "", ""
		if f.Column != "" {
			column = fmt.Sprintf(", column %q", f.Column)
		}
		if f.NameColumn != "" {
			column += fmt.Sprintf(", names from %q", f.NameColumn)
		}
		if f.DistinctEstimated {
			about = "about "
		}
		fmt.Fprintf(w, "read %s (%s%s): %d rows, %s%d distinct ids\n", f.File, f.Format, column, f.Rows, about,
			f.DistinctIDs)
	}
	if more := len(r.Files) - shownFiles; more > 0 {
		fmt.Fprintf(w, "read %d more files: --json lists all\n", more)
	}
}

func (r *buildReport) printEnd(w io.Writer) error {
	for _, refusal := range r.Refusals {
		fmt.Fprintf(w, "guard: %s\n", refusal)
	}
	for _, a := range r.Accepted {
		fmt.Fprintf(w, "accepted: %s: %s\n", cmp.Or(a.Set, a.Segment), a.Change)
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	for _, c := range r.SetsThatGrew {
		stay := ""
		if c.Stay > 0 {
			stay = "; " + terminal.Count(c.Stay, "user who would leave stays", "users who would leave stay")
		}
		fmt.Fprintf(w, "grew: set %q by %d to %s%s\n", c.Set, c.Added, terminal.Count(c.After, "user", "users"), stay)
	}
	for _, k := range r.Kept {
		has := "stays as it was amended"
		if k.Joined {
			has = "keeps the users who were amended"
		}
		fmt.Fprintf(w, "kept: set %q %s: %s: the amend is as of %s, this build only as of %s\n", k.Set, has,
			terminal.Count(k.Users, "user", "users"), publish.AsOfText(k.AmendedAsOf), publish.AsOfText(k.AsOf))
	}
	var err error
	switch r.Status {
	case setsPublished:
		_, err = fmt.Fprintf(w, "published %s to %s: only sets that grew; everything else stays as in %s\n",
			r.Generation,
			r.Location, r.Before)
	case "published":
		if len(r.Amended) > 0 {
			_, err = fmt.Fprintf(w, "published %s to %s: only %s; everything else stays as in %s (%d bytes of bitmaps "+
				"and id files uploaded)\n", r.Generation, r.Location, strings.Join(r.Amended, ", "), r.Before,
				r.UploadedBytes)
			break
		}
		_, err = fmt.Fprintf(w, "published %s to %s (%d bytes of bitmaps and id files uploaded)\n", r.Generation,
			r.Location, r.UploadedBytes)
	case "unchanged":
		_, err = fmt.Fprintf(w, "unchanged: %s is already live in %s\n", r.Generation, r.Location)
	case "dry run":
		_, err = fmt.Fprintf(w, "dry run: nothing was published to %s, where %s is live\n", r.Location,
			cmp.Or(r.Before, "nothing"))
	}
	return err
}

func bound(id *uint32) string {
	if id == nil {
		return "-"
	}
	return fmt.Sprint(*id)
}

// printDrift prints tables of the changes of the segments and sets within a week. If the weekly changes are unknown,
// printDrift prints no table.
func printDrift(w io.Writer, r *publish.Drift) error {
	if r == nil {
		return nil
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "warning: not compared with %s\n", s)
	}
	if r.Generation == "" || len(r.Changes)+len(r.Sets) == 0 {
		return nil
	}
	fmt.Fprintf(w, "drift since %s:\n", r.Generation)
	return errors.Join(printChanges(w, r.Changes, &r.NoSegment), printSetChanges(w, r.Sets))
}

// printChanges prints a table of the changes of every segment. If the argument "none" is not nil, the table also has
// a row for users in no segment.
func printChanges(w io.Writer, changes []publish.Change, none *publish.NoSegment) error {
	if len(changes) == 0 {
		return nil
	}
	table := [][]any{{"segment", "before", "after", "added", "removed", "change"}}
	for _, c := range changes {
		note := c.State
		for _, m := range c.MovedFrom {
			note += fmt.Sprintf(", %d from %s", m.Users, m.From)
		}
		table = append(table, []any{c.Segment, c.Before, c.After, c.Added, c.Removed, percentOf(c.Percent), note})
	}
	if none != nil {
		table = append(table, []any{"(none)", "", "", none.Fall, none.Rise, percentOf(none.Percent), noneNote(none)})
	}
	return terminal.Table(w, terminal.Right, table...)
}

// percentOf formats a percentage in the form that the flag --accept expects.
func percentOf(percent float64) string {
	text := segments.PercentText(percent)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text + " %"
}

func noneNote(n *publish.NoSegment) string {
	if n.Fall == 0 {
		return publish.Same
	}
	return fmt.Sprintf("%d have no segment and get the default limits", n.Fall)
}

// printSetChanges prints a table of the changed sets, and the number of unchanged sets. If neither generation
// (published version) has sets, printSetChanges prints nothing.
func printSetChanges(w io.Writer, changes []publish.Change) error {
	var table [][]any
	for _, c := range changes {
		if c.State != publish.Same {
			table = append(table, []any{c.Set, c.Before, c.After, c.Added, c.Removed, percentOf(c.Percent), c.State})
		}
	}
	err := printSetTable(w, []any{"set", "before", "after", "added", "removed", "change"}, table)
	if same := len(changes) - len(table); same > 0 {
		_, err = fmt.Fprintf(w, "unchanged sets: %d\n", same)
	}
	return err
}
