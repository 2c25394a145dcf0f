package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
)

func TestGenerationsAndTheirChanges(t *testing.T) {
	t.Parallel()
	dir := objects.NewDirectory(t.TempDir())
	s := newService(t, func(cfg *server.Config) { cfg.History = publish.New(dir, time.Now) })
	empty := decodeAs[api.Generations](t, s.get("/v1/generations").body)
	require.Equal(t, &api.Generations{InUse: "2037-11-20T080000Z-1", Generations: []api.GenerationInfo{}}, empty)

	publisher := &publish.Publisher{Location: dir, Clock: segmentstest.Stepping(), ToolVersion: "test 1"}
	var names []string
	for _, users := range [][]uint32{{1, 2}, {2, 3, 4}} {
		base, err := publish.ReadLiveState(t.Context(), dir)
		require.NoError(t, err)
		made, err := publisher.Publish(t.Context(), &publish.Candidate{Names: []string{"vip"},
			Bitmaps: []*bitmap.Bitmap{bitmap.Of(users...)}}, base, "")
		require.NoError(t, err)
		names = append(names, made.Manifest.Generation)
	}
	s = newService(t, func(cfg *server.Config) { cfg.History = publish.New(dir, time.Now) })
	list := decodeAs[api.Generations](t, s.get("/v1/generations").body).Generations
	require.Len(t, list, 2)
	require.Equal(t, names[1], list[0].Generation)
	require.True(t, list[0].Live)
	require.False(t, list[0].CheckedAt.IsZero())
	require.EqualValues(t, 3, list[0].Users)
	require.Equal(t, "test 1", list[0].ToolVersion)

	path := "/v1/generations/" + names[1] + "/changes"
	require.Equal(t, &api.GenerationChanges{
		From: names[0], To: names[1], Exact: true, Sets: []api.SegmentChange{}, InNone: &api.NoSegmentChange{Left: 1,
			Joined: 2},
		Segments: []api.SegmentChange{{Name: "vip", State: "changed", Before: 2, After: 3, Added: 2, Removed: 1}},
	}, decodeAs[api.GenerationChanges](t, s.get(path+"?since="+names[0]).body))
	requireRefused(t, s.get(path), http.StatusBadRequest, "invalid_request",
		badBody{field: "since", message: "is required"})
	requireRefused(t, s.get(path+"?since=2020"), http.StatusNotFound, "not_found",
		badBody{message: "generation 2020 does not exist: GET /v1/generations lists all"})
	requireRefused(t, s.get("/v1/generations/2021/changes?since="+names[0]), http.StatusNotFound, "not_found",
		badBody{message: "generation 2021 does not exist"})
}

// brokenHistory is a source that does not answer.
type brokenHistory struct{}

func (brokenHistory) List(context.Context) ([]publish.Listing, bool, error) {
	return nil, false, errors.New("no such host")
}

func (brokenHistory) Changes(context.Context, string, string) (*publish.Changes, error) {
	return nil, errors.New("no such host")
}

func TestASourceThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*server.Config){func(*server.Config) {},
		func(cfg *server.Config) { cfg.History = brokenHistory{} }} {
		s := newService(t, change)
		for _, path := range []string{"/v1/generations", "/v1/generations/b/changes?since=a"} {
			r := s.get(path)
			requireRefused(t, r, http.StatusServiceUnavailable, "unavailable",
				badBody{message: "the location of the segments could not be read"})
			require.Equal(t, "1", r.header.Get("Retry-After"))
		}
	}
}
