package ingest

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"capper/internal/segments/ingest/format"
	"capper/internal/segments/publish"
	"capper/internal/yamltree"
)

func text(to *string) yamltree.Field {
	return func(v yamltree.Value) { *to, _ = v.Scalar() }
}

func fieldNames(to *[]string) yamltree.Field {
	return func(v yamltree.Value) {
		if name, ok := v.Scalar(); ok {
			*to = append(*to, name)
		}
	}
}

// The function "checked" returns a parser for a field of the build file that must contain a text. If the text is not
// empty, the returned parser calls the function "set" with the text.
func checked(set func(string) error) yamltree.Field {
	return func(v yamltree.Value) {
		s, ok := v.Scalar()
		if !ok || s == "" {
			return
		}
		if err := set(s); err != nil {
			v.Fault("%s", err)
		}
	}
}

func formatField(to *Format) yamltree.Field {
	return checked(func(s string) error {
		if *to = Format(s); !to.Known() {
			return fmt.Errorf("%q: must be one of %v", s, formats())
		}
		return nil
	})
}

func header(to *format.Header) yamltree.Field {
	return func(v yamltree.Value) {
		var yes bool
		yamltree.Bool(&yes)(v)
		if *to = format.HeaderNo; yes {
			*to = format.HeaderYes
		}
	}
}

func finalNewline(to *FinalNewline) yamltree.Field {
	return checked(func(s string) error {
		if *to = FinalNewline(s); !to.Known() {
			return fmt.Errorf("must be 'required' or 'optional', got %q", s)
		}
		return nil
	})
}

func age(to *time.Duration) yamltree.Field {
	return func(v yamltree.Value) {
		s, _ := v.Word()
		age, err := time.ParseDuration(s)
		if err != nil || age <= 0 {
			v.Fault("must be a duration such as 36h, got %s", v.Describe())
		}
		*to = age
	}
}

// The function "whole" returns a parser for a field of the build file whose value must be a whole number from 0. The
// value may have every YAML notation of numbers, such as 1_000_000.
func whole(set func(int64)) yamltree.Field {
	return func(v yamltree.Value) {
		n, err := uint64(0), strconv.ErrSyntax
		if v.IsInteger() {
			n, err = strconv.ParseUint(v.Token(), 0, 64)
		}
		if err != nil || n > math.MaxInt64 {
			v.Fault("must be a whole number from 0, got %s", v.Describe())
			return
		}
		set(int64(n))
	}
}

func percent(set func(float64)) yamltree.Field {
	return func(v yamltree.Value) {
		if v.IsList() || v.IsMapping() {
			v.Fault("must be a percentage such as 20%%, got %s", v.Describe())
			return
		}
		p, err := publish.ParsePercent(v.Token())
		if err != nil {
			v.Fault("must be a percentage such as 20%%, got %s", v.Describe())
		}
		set(p)
	}
}

// onlyGrows returns a parser for the build file's field "only_grows" of a set. The value is true, false, or the
// percentage of users who may leave the set.
func onlyGrows(to *publish.Growth) yamltree.Field {
	return func(v yamltree.Value) {
		growth, err := ParseGrowth(v.Token())
		if v.IsList() || v.IsMapping() || err != nil {
			v.Fault("must be true, false, or the share of users that may leave, such as 0.1%%, got %s", v.Describe())
			return
		}
		*to = growth
	}
}

// ParseGrowth parses an operator's setting "only grows" of a set: "true", "false", or the percentage of users who may
// leave in one publish, such as "0.1%". If the value is "true", the percentage of users who may leave is
// publish.UsualMaxLoss.
func ParseGrowth(text string) (publish.Growth, error) {
	switch text {
	case "true":
		return publish.Growth{Said: true, OnlyGrows: true, MaxLoss: publish.UsualMaxLoss}, nil
	case "false":
		return publish.Growth{Said: true}, nil
	}
	loss, err := publish.ParsePercent(text)
	if err != nil || loss >= 100 {
		return publish.Growth{}, fmt.Errorf("%q: must be true, false, or a percentage below 100 such as 0.1%%",
			text)
	}
	return publish.Growth{Said: true, OnlyGrows: true, MaxLoss: loss}, nil
}

// addChangeBounds adds the build file's fields for the limits on changes of a segment or set to the map.
func addChangeBounds(fields map[string]yamltree.Field, to *publish.SegmentBounds) {
	fields["max_change"] = percent(func(p float64) { to.MaxChange = &p })
	fields["max_week_change"] = percent(func(p float64) { to.MaxWeekChange = &p })
}

// addBounds adds the build file's fields for the limits on the size and the changes of a segment or published set to
// the map.
func addBounds(fields map[string]yamltree.Field, to *publish.SegmentBounds) {
	users := func(to **uint64) yamltree.Field {
		return whole(func(n int64) { u := uint64(n); *to = &u })
	}
	addChangeBounds(fields, to)
	fields["min_users"], fields["max_users"] = users(&to.MinUsers), users(&to.MaxUsers)
}
