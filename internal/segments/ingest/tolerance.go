package ingest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Tolerance is the limit of bad rows that a build skips and counts. The zero Tolerance allows no bad row. A file in
// which all rows are bad is always an error.
type Tolerance struct {
	Rows  int64   // number of rows in all files together
	Share float64 // fraction of the rows of each file, 0 to 1; if above 0, Rows has no effect
}

// parseTolerance parses a limit of bad rows: a number of rows, such as 500, or a percentage of the rows of each file,
// such as 0.1%.
func parseTolerance(s string) (Tolerance, error) {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 100 {
			return Tolerance{}, fmt.Errorf("must be a percentage of rows from 0%% to 100%%, got %q", s)
		}
		return Tolerance{Share: v / 100}, nil
	}
	rows, err := strconv.ParseInt(s, 10, 64)
	if err != nil || rows < 0 {
		return Tolerance{}, fmt.Errorf("must be a whole number of rows, or a share such as 0.1%%, got %q", s)
	}
	return Tolerance{Rows: rows}, nil
}

// UnmarshalText parses the value of a command-line flag.
func (t *Tolerance) UnmarshalText(text []byte) (err error) {
	*t, err = parseTolerance(string(text))
	return err
}

func (t Tolerance) String() string {
	if t.Share > 0 {
		return strconv.FormatFloat(t.Share*100, 'g', 6, 64) + "% of a file's rows"
	}
	return strconv.FormatInt(t.Rows, 10)
}

// The method "refuses" returns the files that make a build fail: all rows of the file are bad, or the percentage of bad
// rows is too large.
func (t Tolerance) refuses(files []FileReport) (refused []FileReport) {
	for _, f := range files {
		if f.Bad == 0 {
			continue
		}
		if f.Rows == 0 || t.Share > 0 && float64(f.Bad) > t.Share*float64(f.Rows+f.Bad) {
			refused = append(refused, f)
		}
	}
	return refused
}
