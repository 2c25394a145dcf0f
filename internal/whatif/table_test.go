package whatif

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

func TestSentencesSayOnceHowManyWereJudgedAnew(t *testing.T) {
	t.Parallel()
	lines := strings.Join(Sentences(&Result{
		Calls: 1, Asked: 3607, Judged: 3607, Erased: 14,
	}), "\n")
	require.Contains(t, lines,
		" 1 call, 3,607 users asked for, counted in each call; 3,607 of these were judged again\n")
	require.Equal(t, 1, strings.Count(lines, "judged again"))
	require.Contains(t, lines, "14 results of users who have been erased since")
}

func TestSentencesTellSeveralVersionsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	const told = "2 versions of the configuration decided the recorded calls"
	require.NotContains(t, strings.Join(Sentences(&Result{Calls: 1, Configs: []string{"a"}}), "\n"), "versions")
	require.Contains(t, strings.Join(Sentences(&Result{Calls: 1, Configs: []string{"a", "b"}}), "\n"), told)
}

func TestTablesShowTheSendsThatChange(t *testing.T) {
	t.Parallel()
	row := api.WhatIfRow{Name: "vip", Before: api.WhatIfCounts{Sends: 1227, Denied: 58},
		After: api.WhatIfCounts{Sends: 1269, Denied: 11}, Gained: 47, Lost: 5}
	rows := []api.WhatIfRow{row}
	result := &Result{Calls: 1, Days: rows, Segments: rows, Channels: rows, Campaigns: rows}
	for _, table := range Tables(result, 10) {
		if len(table.Head) < 8 { // no sends
			continue
		}
		require.Equal(t, []string{"sends", "would be", "change", "lost", "gained", "denied", "would be"},
			table.Head[1:])
		require.Equal(t, [][]string{{"vip", "1,227", "1,269", "+3.4 %", "5", "47", "58", "11"}}, table.Rows,
			table.Title)
	}
	released := row
	released.After.Released = 3
	table := Tables(&Result{Calls: 1, Days: []api.WhatIfRow{released}}, 10)[0]
	require.Equal(t, []string{"released", "would be"}, table.Head[8:])
	require.Equal(t, []string{"0", "3"}, table.Rows[0][8:])
}

func TestNamesOfThePageAreNotBrokenAfterEachLetter(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	require.NoError(t, Page(&page, "stricter.yaml", &Result{Calls: 1}, 10))
	require.NotContains(t, page.String(), "anywhere", "a column would become one letter wide")
	require.Contains(t, page.String(), "overflow-x: auto")
}
