package ingest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Tolerance is how many bad rows are left out and counted instead of being an
// error. The zero Tolerance tolerates none. A file without one good row is never
// tolerated.
type Tolerance struct {
	Rows  int64   // over all files together
	Share float64 // of the rows of each file, 0 to 1; not together with Rows
}

// parseTolerance takes a number of rows, 500, or a share of every file's rows, 0.1%.
func parseTolerance(s string) (Tolerance, error) {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 100 {
			return Tolerance{}, fmt.Errorf("must be from 0%% to 100%%, got %q", s)
		}
		return Tolerance{Share: v / 100}, nil
	}
	rows, err := strconv.ParseInt(s, 10, 64)
	if err != nil || rows < 0 {
		return Tolerance{}, fmt.Errorf("must be a whole number of rows, or a share such as 0.1%%, got %q", s)
	}
	return Tolerance{Rows: rows}, nil
}

// UnmarshalText makes a Tolerance a value of command lines.
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

// refuses lists the files that are not to be tolerated whatever the others
// hold: those without a good row and those with too large a share of bad ones.
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
