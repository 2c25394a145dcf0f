package archive_test

import (
	"fmt"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
)

func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }

const (
	begun  = capping.Instant(91_000_000_000)
	second = capping.Instant(1000)
	hour   = 3600 * second
)

// send is a filter call that allowed the users.
func send(at capping.Instant, message string, channel capping.Channel, users ...uint32) *audit.Record {
	return &audit.Record{
		Kind: audit.Filter, At: at, Took: 5 * time.Millisecond, Message: capping.Message{ID: message}, Channel: channel,
		Client: "crm", Key: "crm-1",
		Generation: "20261122T100000.000Z-0a1b2c3d", Config: "0f1e2d3c4b5a",
		Groups: []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(users...)}},
	}
}

// gives back the sends of the users.
func release(at capping.Instant, message string, channel capping.Channel, users ...uint32) *audit.Record {
	r := send(at, message, channel)
	r.Kind, r.Groups = audit.Release, []audit.Group{{Outcome: audit.Released, Users: bitmap.Of(users...)}}
	return r
}

// told is records as text, and the errors between them.
func told(t *testing.T, records iter.Seq2[*audit.Record, error]) (list []string) {
	for r, err := range records {
		if err != nil {
			list = append(list, "error: "+err.Error())
			continue
		}
		text := fmt.Sprintf("+%d %s", r.At-begun, r.Message.ID)
		for _, g := range r.Groups {
			text += fmt.Sprintf(" %v %v", g.Outcome, g.Users.IDs())
		}
		list = append(list, text)
	}
	return list
}

func open(at objects.Source) *archive.Archive {
	return archive.New(at, func(raw []byte) (*capping.Policy, error) {
		return &capping.Policy{Version: string(raw)},
			nil
	})
}

func TestRecordsOfAllInstancesComeInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		a, b := audittest.NewWriter(at, 1), audittest.NewWriter(at, 2)
		late := send(begun+1, "slow", 1, 1)
		a.Roll(t, audittest.Frames(send(begun+2, "m2", 1, 2), send(begun+9, "m9", 2, 2, 3), late)...)
		b.Roll(t, audittest.Frames(send(begun+4, "m4", 1, 4), release(begun+5, "m2", 0, 2))...)
		b.Roll(t, audittest.Frames(send(begun+48*hour, "later", 1, 4))...)
		a.Open(t, 3, audittest.Frames(send(begun+11, "m11", 1, 5), send(begun+12, "torn", 1, 5))...)
		archived := open(at)
		all := []string{
			"+1 slow allowed [1]", "+2 m2 allowed [2]", "+4 m4 allowed [4]", "+5 m2 released [2]",
			"+9 m9 allowed [2 3]", "+11 m11 allowed [5]",
			"+172800000 later allowed [4]",
		}
		require.Equal(t, all, told(t, archived.Records(t.Context(), archive.Query{})))
		user := capping.UserID(2)
		for name, c := range map[string]struct {
			query archive.Query
			want  []string
		}{
			"since":   {archive.Query{Since: begun + 11}, all[5:]},
			"until":   {archive.Query{Until: begun + 4}, all[:2]},
			"message": {archive.Query{Message: &capping.Message{ID: "m2"}}, []string{all[1], all[3]}},
			"nothing": {archive.Query{Message: &capping.Message{ID: "m2", Namespace: "x"}}, nil},
			"channel": {archive.Query{Channel: 2}, []string{all[3], all[4]}},
			"user":    {archive.Query{User: &user}, []string{all[1], all[3], all[4]}},
			"kind":    {archive.Query{Kinds: []audit.Kind{audit.Release}}, all[3:4]},
		} {
			require.Equal(t, c.want, told(t, archived.Records(t.Context(), c.query)), name)
		}
		audittest.Erase(t, at, 1, begun+9, 2, 4)
		require.Equal(t, []string{"+9 m9 allowed [2 3]"},
			told(t, archived.Records(t.Context(), archive.Query{User: &user})), "erased: what was before is gone")
		list, err := archived.Instances(t.Context())
		require.NoError(t, err)
		require.Equal(t, []archive.Instance{
			{Name: a.Instance, Files: 1, Records: 3, First: begun + 1, Last: begun + 14, Open: true},
			{Name: b.Instance, Files: 2, Records: 3, First: begun + 4, Last: begun + 48*hour + 5},
		}, list)
	})
}

func TestGrants(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	w := audittest.NewWriter(at, 1)
	unknown := send(begun+3, "promo", 1)
	unknown.Groups = []audit.Group{{Outcome: audit.Unavailable, Users: bitmap.Of(1, 8, 9)},
		{Outcome: audit.Replayed, Users: bitmap.Of(7)}}
	w.Roll(t, audittest.Frames(send(begun, "promo", 1, 1, 2, 3), send(begun+1, "promo", 2, 3, 4),
		send(begun+2, "other", 1, 6), unknown,
		release(begun+10, "promo", 1, 2, 8), release(begun+11, "promo", 0, 3), send(begun+12, "promo", 1, 3))...)
	list, err := open(at).Grants(t.Context(), capping.Message{ID: "promo"}, 0)
	require.NoError(t, err)
	var got []string
	for _, g := range list {
		got = append(got, fmt.Sprint(g.Channel, g.Users.IDs(), g.Unknown.IDs()))
	}
	require.Equal(t, []string{"1 [1 3 7] [9]", "2 [4] []"}, got)
	list, err = open(at).Grants(t.Context(), capping.Message{ID: "promo"}, 2)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.EqualValues(t, 1, list[0].Users.Cardinality())
}
