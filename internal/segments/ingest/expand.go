package ingest

import (
	"context"
	"fmt"
	"strings"

	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
)

// A file is one input file of a build. An input with a pattern stands for several files.
type file struct {
	name  string
	input Input
	of    int // index of its input
}

// The method "expand" returns the files of the inputs in order, and replaces each pattern by the matching files. A
// pattern without a matching file is an error. If a missing file were no error, a late export would cause empty
// segments.
func (r *reader) expand(ctx context.Context, inputs []Input) ([]file, error) {
	var files []file
	stdins := 0
	for i, in := range inputs {
		if in.Path == stdin {
			stdins++
			files = append(files, file{name: stdin, input: in, of: i})
			continue
		}
		found, err := r.files(in.Path).Glob(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		if len(found.Names) == 0 {
			return nil, noMatch(in.Path, found.LeftOut)
		}
		r.leftOut = append(r.leftOut, found.LeftOut...)
		for _, name := range found.Names {
			files = append(files, file{name: name, input: in, of: i})
		}
	}
	if stdins > 1 {
		return nil, fmt.Errorf("standard input is named %d times, but a program can read it only once", stdins)
	}
	return files, nil
}

func noMatch(pattern string, leftOut []string) error {
	if len(leftOut) == 0 {
		return fmt.Errorf("no file matches %q", pattern)
	}
	return fmt.Errorf("no data file matches %q, but %d other files do, such as %q", pattern, len(leftOut),
		leftOut[0])
}

func (r *reader) files(name string) objects.Files {
	if strings.HasPrefix(name, "s3://") {
		return r.s3
	}
	return objects.LocalFiles{}
}

func (r *reader) opener(name string) format.Opener {
	if name == stdin {
		return format.StandardInput{Reader: r.cfg.Stdin}
	}
	return r.files(name)
}
