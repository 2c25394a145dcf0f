package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// printAsOf prints the as-of time of each set in a generation (published version): the time up to which the set
// reflects all changes by API calls. Manifests of older versions contain no as-of times.
func printAsOf(w io.Writer, m *segments.Manifest) error {
	if !slices.ContainsFunc(m.Sets, func(s segments.Set) bool { return !s.AsOf.IsZero() || !s.AmendedAsOf.IsZero() }) {
		return nil
	}
	var lines grouped
	for _, s := range m.Sets {
		text := "as of " + publish.AsOfText(s.AsOf)
		if !s.AmendedAsOf.IsZero() {
			text += ", amended as of " + publish.AsOfText(s.AmendedAsOf)
		}
		lines.add(text, s.Name)
	}
	return lines.print(w)
}

// An asOfChange describes a set whose as-of time (time up to which the set reflects all changes) differs between two
// generations (published versions).
type asOfChange struct {
	Set    string    `json:"set"`
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}

func asOfChanges(before, after *segments.Manifest) (changes []asOfChange) {
	was := map[string]time.Time{}
	for _, s := range before.Sets {
		was[s.Name] = s.AsOf
	}
	for _, s := range after.Sets {
		if at, ok := was[s.Name]; ok && !at.Equal(s.AsOf) {
			changes = append(changes, asOfChange{s.Name, at, s.AsOf})
		}
	}
	return changes
}

func printAsOfChanges(w io.Writer, changes []asOfChange) error {
	var lines grouped
	for _, c := range changes {
		lines.add("as of "+publish.AsOfText(c.After)+", was "+publish.AsOfText(c.Before), c.Set)
	}
	return lines.print(w)
}

// The type "grouped" collects the names of sets that share a text, such as an as-of time, so that a report prints each
// text once. The field "texts" has the texts in the order in which they were added.
type grouped struct {
	texts []string
	names map[string][]string
}

func (g *grouped) add(text, name string) {
	if g.names == nil {
		g.names = map[string][]string{}
	}
	if g.names[text] == nil {
		g.texts = append(g.texts, text)
	}
	g.names[text] = append(g.names[text], name)
}

// The method "print" prints each text on a line with the names of its sets, for at most shownSets texts.
func (g *grouped) print(w io.Writer) (err error) {
	for _, text := range g.texts[:min(len(g.texts), shownSets)] {
		_, err = fmt.Fprintf(w, "%s: %s\n", text, strings.Join(folded(g.names[text]), ", "))
	}
	if more := len(g.texts) - shownSets; more > 0 {
		_, err = fmt.Fprintf(w, "and %d more times: --json lists all\n", more)
	}
	return err
}

// The function "folded" replaces several set names with the same text before the slash by one entry, such as "country/*
// (3 sets)".
func folded(names []string) (list []string) {
	in := map[string]int{}
	for _, name := range names {
		if folder, _, ok := strings.Cut(name, "/"); ok {
			in[folder]++
		}
	}
	for _, name := range names {
		folder, _, ok := strings.Cut(name, "/")
		switch {
		case !ok || in[folder] == 1:
			list = append(list, name)
		case in[folder] > 1:
			list = append(list, fmt.Sprintf("%s/* (%d sets)", folder, in[folder]))
			in[folder] = 0
		}
	}
	if more := len(list) - shownSets; more > 0 {
		list = append(list[:shownSets], fmt.Sprintf("and %d more", more))
	}
	return list
}
