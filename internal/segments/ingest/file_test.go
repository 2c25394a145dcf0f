package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFaultOfABuildFileIsTold checks that all faults of a build file are reported in the order of
// its lines.
func TestEveryFaultOfABuildFileIsTold(t *testing.T) {
	t.Parallel()
	_, err := parse([]byte(`allow_new: [other]
overlaps: maybe
segments:
  - name: [a]
    input: [a.txt]
    union: everyone
    min_users: 3.7
  - {name: b, inputs: [{path: b.txt, format: xml, min_rows: many, path: c.txt}, {header: maybe}]}
  - c
tabels: []
defaults:
  newer_than: soon
  quote: ab
max_bad_rows: some
sets: {name: everyone}
`), "conf/segments.yaml", Input{}, &Plan{})
	require.EqualError(t, err, `conf/segments.yaml:1:13: allow_new[0]: "other": must be the name of a segment or set in this build
conf/segments.yaml:2:11: overlaps: "maybe": must be error or precedence
conf/segments.yaml:4:11: segments[0].name: must be a single value, got a list
conf/segments.yaml:5:5: segments[0].input: is not a known key; did you mean "inputs"?
conf/segments.yaml:6:12: segments[0].union: must be a list, got "everyone"
conf/segments.yaml:7:16: segments[0].min_users: must be a whole number from 0, got 3.7
conf/segments.yaml:8:46: segments[1].inputs[0].format: "xml": must be one of [text csv tsv ndjson parquet roaring]
conf/segments.yaml:8:61: segments[1].inputs[0].min_rows: must be a whole number from 0, got "many"
conf/segments.yaml:8:67: segments[1].inputs[0].path: is given twice
conf/segments.yaml:8:81: segments[1].inputs[1].path: missing
conf/segments.yaml:8:90: segments[1].inputs[1].header: must be true or false, got "maybe"
conf/segments.yaml:9:5: segments[2]: must be a mapping, got "c"
conf/segments.yaml:10:1: tabels: is not a known key; did you mean "tables"?
conf/segments.yaml:12:15: defaults.newer_than: must be a duration such as 36h, got "soon"
conf/segments.yaml:13:10: defaults.quote: "ab": must be the word none or a byte that is not a digit, blank or line break
conf/segments.yaml:14:15: max_bad_rows: must be a whole number of rows, or a share such as 0.1%, got "some"
conf/segments.yaml:15:7: sets: must be a list, got a mapping`)
}

// TestBuildFilesAsPeopleWriteThem tests numbers as names and columns, empty keys, and shared defaults
// of several inputs.
func TestBuildFilesAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	plan, err := parse([]byte(`
segments:
  - name: 2024
    inputs:
      - &csv {path: a.csv, id_column: 2, min_rows: 1_000_000, delimiter: ";"}
      - {<<: *csv, path: b.csv}
      - <<: *csv
        path: s3://bucket/c.csv
        id_column: user
      - "-"
      - /d.txt
    minus:
overlaps:
tables:
`), "conf/segments.yaml", Input{Format: csv}, &Plan{})
	require.NoError(t, err)
	in := Input{Path: "conf/a.csv", Format: csv, IDColumn: "2", Delimiter: ';',
		Expect: Expect{MinRows: 1_000_000}}
	b, c := in, in
	b.Path = "conf/b.csv"
	c.Path, c.IDColumn = "s3://bucket/c.csv", "user"
	require.Equal(t, []Definition{{Name: "2024", Inputs: []Input{
		in, b, c, {Path: stdin, Format: csv}, {Path: "/d.txt", Format: csv},
	}}}, plan.Segments)
	require.Empty(t, plan.Tables)
	require.False(t, plan.Precedence)
}
