//go:build storms

package main

import "testing"

func TestNobodyIsLostFromAListInMoreHistories(t *testing.T) {
	t.Parallel()
	nobodyIsLostFromAList(t, 1, 6)
}

func TestNobodyIsLostByMoreStartsWithoutACache(t *testing.T) {
	t.Parallel()
	nobodyIsLostByAStartWithoutACache(t, 1, 8)
}
