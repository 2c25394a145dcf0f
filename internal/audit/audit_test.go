package audit_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
)

var uuids = audit.IDs{Kind: ids.UUID, Check: "51b11a30"}

var update = flag.Bool("update", false, "write the golden files")

const begun = capping.Instant(91_000_000_000)

var header = audit.Header{Instance: "0123456789abcdef", Number: 3, Begun: begun, First: 41,
	Widening: 500 * time.Millisecond}

// written is a file as its writer meant it.
type written struct {
	header audit.Header
	frames []audit.Frame
	closed bool
}

// bytes are the file's, and where each frame ends.
func (w *written) bytes(t require.TestingT) (file []byte, ends []int) {
	e, file := audit.NewEncoder(nil, w.header)
	ends = append(ends, len(file))
	for _, frame := range w.frames {
		if frame.Gap != nil {
			file = e.AppendGap(file, *frame.Gap)
		} else {
			var err error
			file, frame.Record.Sequence, err = e.AppendRecord(file, frame.Record)
			require.NoError(t, err)
		}
		ends = append(ends, len(file))
	}
	if w.closed {
		file = e.AppendEnd(file)
		ends = append(ends, len(file))
	}
	return file, ends
}

// read reads all of a file.
func read(file []byte) (h audit.Header, frames []audit.Frame, r *audit.Reader, err error) {
	r, err = audit.NewReader(bytes.NewReader(file))
	if err != nil {
		return h, nil, nil, err
	}
	for {
		frame, err := r.Next()
		if err != nil {
			return r.Header(), frames, r, err
		}
		frames = append(frames, frame)
	}
}

// plain is what of frames can be compared.
func plain(frames []audit.Frame) (list []any) {
	for _, f := range frames {
		switch {
		case f.Gap != nil:
			list = append(list, *f.Gap)
		case f.Record != nil:
			r := *f.Record
			var users [][]byte
			r.Groups = slices.Clone(r.Groups)
			for i := range r.Groups {
				if r.Groups[i].Users != nil {
					users = append(users, r.Groups[i].Users.Bytes())
					r.Groups[i].Users = nil
				}
			}
			var permits audit.Permits
			if r.Permits != nil {
				permits, r.Permits = *r.Permits, nil
			}
			list = append(list, r, users, permits)
		}
	}
	return list
}

func some(t *rapid.T, label string, names ...string) string {
	return rapid.SampledFrom(names).Draw(t, label)
}

func users(t *rapid.T) *bitmap.Bitmap {
	if rapid.IntRange(0, 9).Draw(t, "range") == 0 {
		from := rapid.Uint32Range(0, 1<<31).Draw(t, "from")
		return bitmap.Range(from, from+rapid.Uint32Range(1, 100_000).Draw(t, "many"))
	}
	return bitmap.Of(rapid.SliceOfN(rapid.Uint32(), 1, 30).Draw(t, "users")...)
}

// images are a few near each other, many that are spread evenly, or the ends of the 64 bits.
func images(t *rapid.T) (list []capping.UserID) {
	switch rapid.IntRange(0, 2).Draw(t, "images") {
	case 0:
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(1, 5000).Draw(t, "many") {
			list = append(list, capping.UserID(random.Uint64()))
		}
	case 1:
		first := rapid.Uint64().Draw(t, "first")
		for n := range rapid.Uint64Range(1, 100).Draw(t, "many") {
			list = append(list, capping.UserID(first+n))
		}
	default:
		list = append(list, 0, 1, 1<<63, 1<<64-1, capping.UserID(rapid.Uint64().Draw(t, "one")))
		list = list[rapid.IntRange(0, 4).Draw(t, "from"):]
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func group(t *rapid.T, kind audit.Kind, ofImages bool) (g audit.Group) {
	if ofImages {
		g.Images = images(t)
	} else {
		g.Users = users(t)
	}
	if kind == audit.Release {
		g.Outcome = rapid.SampledFrom([]audit.Outcome{audit.Released, audit.Absent, audit.ReleaseUnavailable}).Draw(t,
			"outcome")
		return g
	}
	if kind == audit.Change {
		g.Outcome = rapid.SampledFrom([]audit.Outcome{audit.Added, audit.Removed, audit.ChangeUnavailable}).Draw(t,
			"outcome")
		return g
	}
	g.Outcome = rapid.SampledFrom([]audit.Outcome{audit.Allowed, audit.Replayed, audit.Denied, audit.Unavailable}).Draw(
		t, "outcome")
	if g.Outcome == audit.Denied {
		g.By = rapid.SampledFrom([]capping.Reason{capping.ByLimit, capping.BySuppression, capping.ByHoldout,
			capping.ByQuiet}).Draw(t, "by")
		g.Limit = some(t, "limit", "daily", "weekly", "suppressed")
	}
	if g.By == capping.BySuppression {
		g.Set = some(t, "set", "opted-out", "country/de")
	}
	return g
}

func record(t *rapid.T, ofImages bool) *audit.Record {
	r := &audit.Record{
		Kind: rapid.SampledFrom([]audit.Kind{audit.Filter, audit.Release, audit.Pace, audit.Change}).Draw(t,
			"kind"),
		Instance: header.Instance, Widening: header.Widening,
		At:   begun + capping.Instant(rapid.Int64Range(-5000, 600_000).Draw(t, "at")),
		Took: time.Duration(rapid.IntRange(0, 5000).Draw(t, "took")) * time.Millisecond,
		Message: capping.Message{Namespace: some(t, "namespace", "", "crm"), ID: rapid.StringN(0, 10, 40).Draw(t,
			"message")},
		Channel: capping.Channel(rapid.Uint8().Draw(t, "channel")), Client: some(t, "client", "crm", "web"),
		Key:        some(t, "key", "", "k1"),
		Generation: some(t, "generation", "g1", "g2"), Config: some(t, "config", "c1", "c2"),
		Exempt: rapid.Bool().Draw(t, "exempt"), Audience: some(t, "audience", "", "active | vip"),
	}
	if r.Kind == audit.Pace {
		r.Permits = &audit.Permits{
			Pacers:  rapid.SliceOfN(rapid.SampledFrom([]string{"sms", "mail"}), 1, 3).Draw(t, "pacers"),
			Asked:   rapid.IntRange(0, 1000).Draw(t, "asked"),
			Granted: rapid.IntRange(0, 1000).Draw(t, "granted"),
			First:   time.Duration(rapid.IntRange(-9, 1e6).Draw(t, "first")) * time.Microsecond,
			Last:    time.Duration(rapid.IntRange(-9, 1e9).Draw(t, "last")) * time.Microsecond,
			Limited: some(t, "limited", "", "sms"),
		}
		return r
	}
	if r.Kind == audit.Change {
		r.Change = &audit.SetChange{Set: some(t, "changed", "opted-out", "sms-stop"),
			RequestID: some(t, "request", "", "a1"), At: capping.Instant(rapid.Int64Range(0, 1e12).Draw(t, "since"))}
	}
	for range rapid.IntRange(0, 4).Draw(t, "groups") {
		r.Groups = append(r.Groups, group(t, r.Kind, ofImages))
	}
	if r.Kind == audit.Filter {
		n := rapid.IntRange(1, 1e6).Draw(t, "n")
		r.Segments = []audit.SegmentCount{{"new", n, n / 2, n / 3, 0}, {"", 1, 0, 0, 1}}
		r.Shadow = []audit.Count{{"stricter", n}}
	}
	return r
}

func file(t *rapid.T) *written {
	w := &written{header: header, closed: rapid.Bool().Draw(t, "closed")}
	w.header.IDs = rapid.SampledFrom([]audit.IDs{{}, uuids, {Kind: ids.Text, Check: "00000000"}}).Draw(t, "ids")
	for range rapid.IntRange(0, 12).Draw(t, "frames") {
		if rapid.IntRange(0, 5).Draw(t, "gap") == 0 {
			w.frames = append(w.frames, audit.Frame{Gap: &audit.Gap{Lost: rapid.Uint64Range(1, 1e9).Draw(t, "lost"),
				From: begun, To: begun + 1}})
			continue
		}
		w.frames = append(w.frames, audit.Frame{Record: record(t, !w.header.IDs.Dense())})
	}
	return w
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := file(t)
		stored, _ := w.bytes(t)
		h, frames, r, err := read(stored)
		require.Equal(t, io.EOF, err)
		require.Equal(t, w.header, h)
		require.Equal(t, w.closed, r.Ended())
		if w.closed {
			require.NotNil(t, frames[len(frames)-1].End)
			require.Equal(t, r.So(), *frames[len(frames)-1].End)
			frames = frames[:len(frames)-1]
		}
		require.Equal(t, plain(w.frames), plain(frames))
		require.EqualValues(t, len(stored), r.Offset())
	})
}

// A file that is cut anywhere is torn, or ends between two frames without its end; what
// is before the cut is read, and nothing else.
func TestAFileThatIsCutIsTornAndNotDamaged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := file(t)
		stored, ends := w.bytes(t)
		cut := rapid.IntRange(0, len(stored)-1).Draw(t, "cut")
		torn := append(slices.Clone(stored[:cut]), make([]byte, rapid.SampledFrom([]int{0, 0, 1, 4096}).Draw(t,
			"zeros"))...)
		_, frames, r, err := read(torn)
		whole := 0
		for _, end := range ends {
			if end <= cut {
				whole = end
			}
		}
		if whole == 0 { // within the header
			require.Error(t, err)
			return
		}
		if whole == len(torn) {
			require.Equal(t, io.EOF, err)
		} else if len(torn) == cut {
			require.ErrorAs(t, err, new(*audit.TornError))
		} else { // zeros in the place of the rest
			require.Error(t, err)
		}
		require.False(t, r.Ended())
		require.EqualValues(t, whole, r.Offset())
		require.Equal(t, plain(w.frames[:len(frames)]), plain(frames))
	})
}

// Whatever byte of a closed file is another one, its reader does not see a whole file.
func TestNoByteOfAClosedFileCanChangeUnseen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"testdata/format1.audit", "testdata/format2.audit"} {
		stored, err := os.ReadFile(name)
		require.NoError(t, err)
		for at := range stored {
			for _, bits := range []byte{1, 0x80, 0xff} {
				flipped := slices.Clone(stored)
				flipped[at] ^= bits
				_, _, r, err := read(flipped)
				require.False(t, errors.Is(err, io.EOF) && r.Ended(), "byte %d ^ %#x", at, bits)
				require.ErrorAs(t, err, new(*audit.DamageError), "byte %d ^ %#x", at, bits)
			}
		}
	}
}

// golden is a file with one of everything.
func golden() *written {
	at := begun + 1234
	call := func(r audit.Record) audit.Frame {
		r.Instance, r.Widening, r.Client, r.Key, r.Generation, r.Config = header.Instance, header.Widening, "crm",
			"crm-1", "20261122T100000Z-1", "0f1e2d3c4b5a"
		return audit.Frame{Record: &r}
	}
	return &written{header: header, closed: true, frames: []audit.Frame{
		call(audit.Record{Kind: audit.Filter, At: at, Took: 87 * time.Millisecond,
			Message: capping.Message{Namespace: "shop", ID: "promo-7"}, Channel: 1, Groups: []audit.Group{
				{Outcome: audit.Allowed, Users: bitmap.Range(100, 70_000)},
				{Outcome: audit.Replayed, Users: bitmap.Of(7)},
				{Outcome: audit.Denied, Limit: "daily", Users: bitmap.Of(8, 9, 4_294_967_295)},
				{Outcome: audit.Denied, By: capping.BySuppression, Limit: "suppressed", Set: "opted-out",
					Users: bitmap.Of(10)},
				{Outcome: audit.Denied, By: capping.ByHoldout, Limit: "holdout", Users: bitmap.Of(11)},
				{Outcome: audit.Denied, By: capping.ByQuiet, Limit: "quiet", Users: bitmap.Of(12)},
				{Outcome: audit.Unavailable, Users: bitmap.Of(13, 15, 17, 19, 21, 23, 25, 27, 29, 31)},
			}, Segments: []audit.SegmentCount{{"new", 69_900, 69_901, 0, 0}, {"", 17, 0, 6, 10}},
			Shadow: []audit.Count{{"stricter", 5}}}),
		{Gap: &audit.Gap{Lost: 2, From: at + 10, To: at + 20}},
		call(audit.Record{Kind: audit.Filter, At: at + 30, Message: capping.Message{ID: "reset"}, Exempt: true,
			Audience: "active - vip",
			Groups:   []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(42)}},
			Segments: []audit.SegmentCount{{"new", 1, 1, 0, 0}}}),
		call(audit.Record{Kind: audit.Release, At: at + 20, Took: time.Millisecond,
			Message: capping.Message{Namespace: "shop", ID: "promo-7"}, Groups: []audit.Group{
				{Outcome: audit.Released, Users: bitmap.Of(100)}, {Outcome: audit.Absent, Users: bitmap.Of(7)},
				{Outcome: audit.ReleaseUnavailable, Users: bitmap.Of(8)}}}),
		call(audit.Record{Kind: audit.Pace, At: at + 40, Permits: &audit.Permits{Pacers: []string{"sms", "mail"},
			Asked: 10, Granted: 9, First: 0, Last: 1500 * time.Microsecond, Limited: "mail"}}),
	}}
}

// changed returns a file with a change of a set, a kind of record that format 1 has had since live changes.
func changed() *written {
	return &written{header: header, closed: true, frames: []audit.Frame{{Record: &audit.Record{
		Kind: audit.Change, At: begun + 50, Took: 3 * time.Millisecond, Instance: header.Instance,
		Widening: header.Widening, Client: "crm", Key: "crm-1", Generation: "20261122T100000Z-1",
		Config: "0f1e2d3c4b5a",
		Change: &audit.SetChange{Set: "opted-out", At: begun - 3_600_000, RequestID: "01a2140a8ad671f82442aa78"},
		Groups: []audit.Group{{Outcome: audit.Added, Users: bitmap.Of(42)},
			{Outcome: audit.Removed, Users: bitmap.Range(100, 70_000)},
			{Outcome: audit.ChangeUnavailable, Users: bitmap.Of(7)}},
	}}}}
}

// Files of format 1 are read as long as there are any.
func TestFormat1IsReadAndWritten(t *testing.T) {
	t.Parallel()
	requireGolden(t, golden(), "testdata/format1.audit")
	requireGolden(t, changed(), "testdata/format1-sets.audit")
}

// ofImages returns a file with users of another kind than dense.
func ofImages() *written {
	w := golden()
	w.header.IDs = uuids
	image := capping.UserID(0x9e3779b97f4a7c15)
	for _, f := range append(w.frames, changed().frames...) {
		if f.Record == nil {
			continue
		}
		for i := range f.Record.Groups {
			g := &f.Record.Groups[i]
			for range min(20, g.Users.Cardinality()) {
				image *= 0x5851f42d4c957f2d
				g.Images = append(g.Images, image)
			}
			slices.Sort(g.Images)
			g.Users = nil
		}
	}
	return w
}

// Files of format 2 are read as long as there are any.
func TestFormat2IsReadAndWritten(t *testing.T) {
	t.Parallel()
	requireGolden(t, ofImages(), "testdata/format2.audit")
}

// An image takes some 64 bits less the bits of the number of images.
func TestImagesOfABlastTake46Bits(t *testing.T) {
	t.Parallel()
	list, random := make([]capping.UserID, 1_000_000), rand.New(rand.NewPCG(1, 2))
	for i := range list {
		list[i] = capping.UserID(random.Uint64())
	}
	slices.Sort(list)
	h := header
	h.IDs = uuids
	e, begin := audit.NewEncoder(nil, h)
	stored, _, err := e.AppendRecord(slices.Clone(begin), &audit.Record{Kind: audit.Filter, At: begun,
		Groups: []audit.Group{{Outcome: audit.Allowed, Images: list}}})
	require.NoError(t, err)
	require.Less(t, 8*(len(stored)-len(begin)), 46*len(list))

	var g audit.Group
	g.Outcome = audit.Allowed
	g.SetSortedImages(list, nil)
	e, begin = audit.NewEncoder(nil, h)
	again, _, err := e.AppendRecord(begin, &audit.Record{Kind: audit.Filter, At: begun, Groups: []audit.Group{g}})
	require.NoError(t, err)
	require.Equal(t, stored, again)
	_, frames, _, err := read(again)
	require.Equal(t, io.EOF, err)
	require.Equal(t, list, frames[0].Record.Groups[0].Images)
}

// A file of one kind of ids takes no users of another kind, and its header names a kind and a check.
func TestIDsOfAFileAreOfOneKind(t *testing.T) {
	t.Parallel()
	dense := &audit.Record{Kind: audit.Filter, Groups: []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(1)}}}
	wide := &audit.Record{Kind: audit.Filter, Groups: []audit.Group{{Outcome: audit.Allowed,
		Images: []capping.UserID{1}}}}
	const wrongKind = "group 0: group of users in an audit record: " +
		"the ids must be of the same kind as all ids in the audit file"
	h := header
	e, file := audit.NewEncoder(nil, h)
	_, _, err := e.AppendRecord(file, wide)
	require.EqualError(t, err, wrongKind)
	h.IDs = uuids
	e, file = audit.NewEncoder(nil, h)
	_, _, err = e.AppendRecord(file, dense)
	require.EqualError(t, err, wrongKind)
	for _, of := range []audit.IDs{{Kind: 9, Check: "51b11a30"}, {Kind: ids.UUID, Check: "51b11a3"},
		{Kind: ids.UUID, Check: "51B11A30"}, {Kind: ids.UUID}} {
		h.IDs = of
		_, file := audit.NewEncoder(nil, h)
		_, _, _, err := read(file)
		require.ErrorAs(t, err, new(*audit.DamageError), of)
		require.ErrorContains(t, err, "description of its user ids is not valid", of)
	}
}

func requireGolden(t *testing.T, w *written, name string) {
	t.Helper()
	stored, _ := w.bytes(t)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(name, stored, 0o644))
	}
	before, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, before, stored)
	h, frames, r, err := read(before)
	require.Equal(t, io.EOF, err)
	require.True(t, r.Ended())
	require.Equal(t, w.header, h)
	require.Equal(t, plain(w.frames), plain(frames[:len(frames)-1]))
}

// A call of one user, the message new in the file, and the next one of the same message.
func TestSmallCallsTakeTensOfBytes(t *testing.T) {
	t.Parallel()
	e, file := audit.NewEncoder(nil, header)
	r := &audit.Record{
		Kind: audit.Filter, At: begun, Took: 2 * time.Millisecond, Client: "crm", Key: "crm-1",
		Generation: "20261122T100000Z-1", Config: "0f1e2d3c4b5a", Channel: 1,
		Groups:   []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(3_000_000_000)}},
		Segments: []audit.SegmentCount{{"new", 1, 1, 0, 0}},
	}
	size := func(message string) int {
		r.At, r.Message.ID = r.At+3, capping.Message{ID: message}.ID
		before := len(file)
		var err error
		file, _, err = e.AppendRecord(file, r)
		require.NoError(t, err)
		return len(file) - before
	}
	size("first") // with the names that stay
	require.Equal(t, 54, size("order-4711-shipped"))
	require.Equal(t, 35, size("order-4711-shipped"))
}

func TestWhatCannotBeStoredIsRefused(t *testing.T) {
	t.Parallel()
	e, file := audit.NewEncoder(nil, header)
	for name, r := range map[string]*audit.Record{
		"kind":    {Kind: 9},
		"permits": {Kind: audit.Pace},
		"empty":   {Kind: audit.Filter, Groups: []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of()}}},
		"limit":   {Kind: audit.Filter, Groups: []audit.Group{{Outcome: audit.Denied, Users: bitmap.Of(1)}}},
		"text":    {Kind: audit.Filter, Audience: string(make([]byte, audit.MaxText+1))},
	} {
		after, _, err := e.AppendRecord(file, r)
		require.Error(t, err, name)
		require.Len(t, after, len(file))
	}
}

// Whatever a file holds, reading it neither panics nor takes more memory than its size
// asks for, and what was read can be written again and means the same.
func FuzzReader(f *testing.F) {
	for _, w := range []*written{golden(), ofImages()} {
		stored, ends := w.bytes(f)
		f.Add(stored)
		for _, end := range ends {
			f.Add(stored[:end])
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		h, frames, r, err := read(file)
		if r == nil {
			require.Error(t, err)
			return
		}
		w := &written{header: h, closed: r.Ended()}
		for _, frame := range frames {
			if frame.End == nil {
				w.frames = append(w.frames, frame)
			}
		}
		before := plain(w.frames)
		again, _ := w.bytes(t)
		_, reread, _, err := read(again)
		require.Equal(t, io.EOF, err)
		if w.closed {
			reread = reread[:len(reread)-1]
		}
		require.Equal(t, before, plain(reread))
	})
}
