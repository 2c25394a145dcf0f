package server_test

import (
	"context"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
)

// noRecords is an audit without records.
type noRecords struct{}

func (noRecords) Records(context.Context, archive.Query) iter.Seq2[*audit.Record, error] {
	return func(func(*audit.Record, error) bool) {}
}

func (noRecords) Flush(context.Context) error { return nil }

func (noRecords) Grants(context.Context, capping.Message, capping.Channel) ([]archive.Grants, error) {
	return nil, nil
}

// newEmpty returns a service with every feature and no data: no limits, no users in its one segment, no sets, pacers,
// records, sends or generations.
func newEmpty(t *testing.T) *service {
	nobody := bitmap.Of()
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "",
		[]segments.Segment{segments.Describe("nobody", nobody)})
	require.NoError(t, err)
	g := &generations{list: []*segments.Snapshot{
		(&segments.Generation{Manifest: m, Bitmaps: []*bitmap.Bitmap{nobody}}).Snapshot()}}
	return newService(t, func(cfg *server.Config) {
		cfg.Capper = capping.New(cfg.Capper.Store(), func() capping.Segments { return snapshot{Snapshot: g.current()} },
			&capping.Policy{Version: "nothing"}, cfg.Clock)
		cfg.Generations, cfg.Records, cfg.Audit = g.pin, noRecords{}, noRecords{}
		cfg.Pacers = pacing.New(nil, &pacing.Policy{})
		cfg.History = publish.New(objects.NewDirectory(t.TempDir()), time.Now)
	}, counted(t))
}

// TestNothingIsNoNull checks that empty arrays and objects are not null, except where the description allows null.
// The method do checks this for every answer.
func TestNothingIsNoNull(t *testing.T) {
	t.Parallel()
	s := newEmpty(t)
	none := bitmapText(t)
	for _, path := range []string{
		"/v1/users/7", "/v1/users/7/decisions", "/v1/users/7/decisions?since=90d", "/v1/decisions?message_id=promo",
		"/v1/messages",
		"/v1/messages/promo", "/v1/limits", "/v1/pacers", "/v1/segments", "/v1/generations", "/v1/status",
		"/v1/segments/nobody/members",
	} {
		s.requireAnswered("GET "+path, s.get(path), http.StatusOK, http.StatusNotFound)
	}
	for path, bodies := range map[string][]any{
		"/v1/filter": {
			fields{"message_id": "a", "user_ids": []int{}}, fields{"message_id": "a", "users_bitmap": none},
			fields{"message_id": "a", "audience": "all - all"},
			fields{"record": false, "user_ids": []int{}}, fields{"message_id": "a", "user_ids": []int{},
				"detail": "counts"},
		},
		"/v1/release": {fields{"message_id": "a", "user_ids": []int{}},
			fields{"message_id": "a", "users_bitmap": none}},
		"/v1/sends": {fields{"sends": []any{}}},
		"/v1/sends/check": {fields{"message_id": "a", "user_ids": []int{}},
			fields{"message_id": "a", "user_ids": []int{7}}},
		"/v1/segments/lookup": {fields{"user_ids": []int{}}, fields{"user_ids": []int{7}},
			fields{"users_bitmap": none}},
		"/v1/audience/count": {fields{"audience": "all"}},
		"/v1/forecast":       {fields{"user_ids": []int{}}, fields{"audience": "all", "at": []any{}}},

		"/v1/messages/promo/release": {fields{}},
	} {
		for _, body := range bodies {
			s.requireAnswered(path, s.post(path, body), http.StatusOK, http.StatusBadRequest, http.StatusNotFound)
		}
	}
	s.filter(fields{"message_id": "a", "user_ids": []int{7}})
	s.requireAnswered("a user", s.get("/v1/users/7"), http.StatusOK)
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/7", "").status)
	s.requireAnswered("an erased user", s.get("/v1/users/7/decisions"), http.StatusOK)
	s.requireAnswered("a message to one user", s.get("/v1/messages/a"), http.StatusOK, http.StatusNotFound)
}

// TestNoChangeIsNoNull checks the same for comparisons, which need generations at the source.
func TestNoChangeIsNoNull(t *testing.T) {
	t.Parallel()
	dir := objects.NewDirectory(t.TempDir())
	publisher := &publish.Publisher{Location: dir, Clock: segmentstest.Stepping(), ToolVersion: "test 1"}
	var names []string
	for range 2 {
		base, err := publish.ReadLiveState(t.Context(), dir)
		require.NoError(t, err)
		made, err := publisher.Publish(t.Context(), &publish.Candidate{Names: []string{"nobody"},
			Bitmaps: []*bitmap.Bitmap{bitmap.Of()}}, base, "")
		require.NoError(t, err)
		names = append(names, made.Manifest.Generation)
	}
	s := newService(t, func(cfg *server.Config) { cfg.History = publish.New(dir, time.Now) })
	s.requireAnswered("changes", s.get("/v1/generations/"+names[1]+"/changes?since="+names[0]), http.StatusOK)
}

// requireAnswered requires one of the statuses. The method do has checked the answer against the description.
func (s *service) requireAnswered(what string, r reply, statuses ...int) {
	s.t.Helper()
	require.Contains(s.t, statuses, r.status, "%s: %s", what, r.body)
}
