package script

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// The file live.go has the arguments and replies of live.lua, and the Redis key of a partition's live change log (log
// of changes to sets).

// LiveHex is the number of hexadecimal digits in the id of a live change log (log of changes to sets by API calls). The
// nonce (random name) of a record in the log also has LiveHex digits.
const LiveHex = 8

// livePage is the size, in bytes, at which one read of a live change log (log of changes to sets by API calls) ends.
const livePage = 1_000_000

// liveOutdated is the reply of filter.lua if the caller does not have the latest live changes (changes of sets by API
// calls).
const liveOutdated = "L"

// AppendLiveKey appends the Redis key of one partition's live change log (log of changes to sets by API calls). No
// bucket of users has the Redis key of a live change log.
func AppendLiveKey(dst []byte, prefix string) []byte {
	return append(append(dst, prefix...), "-live"...)
}

// A LiveVersion is the version of a live change log (log of changes to sets by API calls): the name of the latest
// record in the log.
type LiveVersion struct {
	ID, Nonce string // LiveHex digits each
	Number    int
}

// ParseLiveVersion parses the text form of a LiveVersion, the version of a live change log (log of changes to sets by
// API calls).
func ParseLiveVersion(text string) (v LiveVersion, err error) {
	if len(text) <= 2*LiveHex {
		return v, fmt.Errorf(
			"log of changes to sets of users: the latest record's name must have more than %d characters, got %q",
			2*LiveHex, text)
	}
	v.ID, v.Nonce = text[:LiveHex], text[LiveHex:2*LiveHex]
	v.Number, err = strconv.Atoi(text[2*LiveHex:])
	return v, err
}

// LiveMeta describes the packed records of a live change log (log of changes to sets by API calls). A packed record has
// the changes of many calls.
type LiveMeta struct {
	Packs       int // number of times that the log was packed
	First, Last int // the range of the numbers of packed records, which has gaps
	Compacted   int // number of packed records after the latest compaction
	Packed      int // number of the latest record that was packed; 0: none
	Nonce       string
}

// ParseLiveMeta parses the text of a LiveMeta, as stored in a field of the live change log (log of changes to sets by
// API calls). The text "" means that the log was never packed.
func ParseLiveMeta(text string) (m LiveMeta, err error) {
	if text == "" {
		return LiveMeta{First: 1}, nil
	}
	n, err := fmt.Sscanf(text+".", "%d %d %d %d %d %s", &m.Packs, &m.First, &m.Last, &m.Compacted, &m.Packed, &m.Nonce)
	if err != nil || n < 6 {
		return m, ErrReply
	}
	m.Nonce = m.Nonce[:len(m.Nonce)-1]
	return m, nil
}

// String returns the LiveMeta as the text that is stored in a field of the live change log (log of changes to sets by
// API calls).
func (m LiveMeta) String() string {
	return fmt.Sprint(m.Packs, " ", m.First, " ", m.Last, " ", m.Compacted, " ", m.Packed, " ", m.Nonce)
}

// A LiveField is one record of a live change log (log of changes to sets by API calls), with its name, its nonce
// (random name) and its content.
type LiveField struct{ Name, Nonce, Content string }

// The method Number returns the number of a record with the changes of one call. For a packed record, the result "ok"
// is false.
func (f *LiveField) Number() (n int, ok bool) {
	n, err := strconv.Atoi(f.Name)
	return n, err == nil
}

// The method Pack returns the number of a packed record, that is, a record with the changes of many calls. For a record
// of one call, the result "ok" is false.
func (f *LiveField) Pack() (k int, ok bool) {
	if f.Name == "" || f.Name[0] != 'p' {
		return 0, false
	}
	k, err := strconv.Atoi(f.Name[1:])
	return k, err == nil
}

// PackedName returns the name that the packed record with the number k has in a live change log (log of changes to sets
// by API calls).
func PackedName(k int) string { return "p" + strconv.Itoa(k) }

// These constants are the kinds of pages that live.lua returns from a live change log (log of changes to sets by API
// calls).
const (
	LiveLatest = 'n' // the known version is the latest version
	LiveAfter  = 'i' // the page has the records after the known version
	LiveWhole  = 'w' // the page is a part of the whole log
	LiveTorn   = 'x' // the log has changed since the previous page
)

// A LivePage is the decoded reply of live.lua if the call reads a live change log (log of changes to sets by API
// calls).
type LivePage struct {
	Version, MetaText, Freed string
	Restoring                string // token of the restoration in progress (LiveBegin); "": none
	Meta                     LiveMeta
	Kind                     byte
	Next                     string // where the next read continues; "": this page ends the log
	Fields                   []LiveField
}

// LiveAppend encodes a call of live.lua, which appends the changes of one API call to a live change log (log of changes
// to sets by API calls). The encoded Redis command is complete only after the caller has called StampTime, which adds
// the time. Each attempt to append a record writes a nonce (random name) of its own.
func (a *Args) LiveAppend(s *Script, prefix string, ttl time.Duration, id string, nonce, changes []byte) {
	a.live(s, prefix, []byte{'a'}, milliseconds(ttl), []byte(id), nonce, changes, a.head[:stampSize])
}

// LiveRead encodes a call of live.lua, which reads the records after the known version, or a page of the whole log.
func (a *Args) LiveRead(s *Script, prefix string, known, from string) {
	a.live(s, prefix, []byte{'r'}, []byte(known), []byte(from))
}

// LiveTail returns the place in a live change log (log of changes to sets by API calls) at which a read of the latest
// packed records begins. The argument "records" of LiveTail is the number of packed records to read.
func LiveTail(records int) string { return "t" + strconv.Itoa(records) }

// A LivePacking is a replacement of records in a live change log (log of changes to sets by API calls): the removed
// records, and the packed records in their place.
type LivePacking struct {
	Version  string // version up to which the log was read
	MetaText string // the description of the packed records as it was read
	Meta     LiveMeta
	Nonce    string // "": the freed instants do not change
	Freed    []byte
	Remove   []string
	Names    []string // names of the new packed records
	Contents [][]byte
}

// LivePack encodes a call of live.lua, which replaces records of a live change log (log of changes to sets by API
// calls) by packed records.
func (a *Args) LivePack(s *Script, prefix string, ttl time.Duration, p *LivePacking) {
	rest := [][]byte{{'p'}, milliseconds(ttl), []byte(p.Version), []byte(p.MetaText), []byte(p.Meta.String()),
		[]byte(p.Nonce), p.Freed, strconv.AppendInt(nil, int64(len(p.Remove)), 10)}
	for _, name := range p.Remove {
		rest = append(rest, []byte(name))
	}
	for i, name := range p.Names {
		rest = append(rest, []byte(name), p.Contents[i])
	}
	a.live(s, prefix, rest...)
}

func milliseconds(d time.Duration) []byte { return strconv.AppendInt(nil, d.Milliseconds(), 10) }

func (a *Args) live(s *Script, prefix string, rest ...[]byte) {
	a.begin(s)
	a.buf = AppendLiveKey(a.buf, prefix)
	a.endKey()
	a.finish(1, rest...)
}

// DecodeLiveAppended decodes the reply of live.lua to an append: the log's versions before and after the append, and
// the description of the packed records.
func DecodeLiveAppended(list []string) (before, after string, meta LiveMeta, err error) {
	if len(list) != 3 {
		return "", "", LiveMeta{}, ErrReply
	}
	if _, err := ParseLiveVersion(list[1]); err != nil {
		return "", "", LiveMeta{}, ErrReply
	}
	meta, err = ParseLiveMeta(list[2])
	return list[0], list[1], meta, err
}

// LiveBegin begins the restoration of a partition that has lost its records of live changes (changes of sets by API
// calls). During a restoration, all instances again store their live changes in the partition that has lost records.
// LiveEnd ends the restoration.
func LiveBegin(ctx context.Context, s *Script, client redis.Scripter, prefix string, ttl time.Duration, id, nonce,
	token string) error {
	return runLive(ctx, s, client, prefix, 'l', ttl.Milliseconds(), id, nonce, token).Err()
}

// LiveConfirm records in Redis that one instance has stored all its live changes (changes by API calls) of the
// partition again. If the restoration (all instances store their live changes again) with this token has ended already,
// the result "done" is false.
func LiveConfirm(ctx context.Context, s *Script, client redis.Scripter, prefix, token, instance string) (done bool,
	err error) {
	reply, err := runLive(ctx, s, client, prefix, 'c', token, instance).StringSlice()
	return len(reply) > 0 && reply[0] == "D", err
}

// LiveEnd ends the restoration with the token (id of a restoration), but only if all given instances have confirmed
// that they stored their live changes again. The result "missing" of LiveEnd lists the instances that have not
// confirmed yet. The result "done" of LiveEnd reports whether the restoration (all instances store their live changes
// again) has ended.
func LiveEnd(ctx context.Context, s *Script, client redis.Scripter, prefix, token string,
	instances []string) (done bool,
	missing []string, err error) {
	args := []any{token}
	for _, instance := range instances {
		args = append(args, instance)
	}
	reply, err := runLive(ctx, s, client, prefix, 'e', args...).StringSlice()
	if err != nil || len(reply) == 0 {
		return false, nil, cmp.Or(err, ErrReply)
	}
	return reply[0] != "M", reply[1:], nil
}

func runLive(ctx context.Context, s *Script, client redis.Scripter, prefix string, operation byte,
	args ...any) *redis.Cmd {
	return s.Run(ctx, client, []string{string(AppendLiveKey(nil, prefix))}, append([]any{string(operation)},
		args...)...)
}

// DecodeLivePacked decodes the reply of live.lua to a call that replaces records by packed records. If another call had
// changed the live change log (log of changes to sets by API calls), the script wrote nothing. If the script wrote
// nothing, the result "done" is false.
func DecodeLivePacked(list []string) (done bool, before, after string, err error) {
	if len(list) != 3 || list[0] != "D" && list[0] != "N" {
		return false, "", "", ErrReply
	}
	return list[0] == "D", list[1], list[2], nil
}

// DecodeLivePage decodes the reply of live.lua to a call that reads a live change log (log of changes to sets by API
// calls).
func DecodeLivePage(list []string) (*LivePage, error) {
	if len(list) < 6 || len(list)%2 != 0 || len(list[4]) != 1 {
		return nil, ErrReply
	}
	p := &LivePage{Version: list[0], MetaText: list[1], Freed: list[2], Restoring: list[3], Kind: list[4][0],
		Next: list[5]}
	var err error
	if p.Meta, err = ParseLiveMeta(p.MetaText); err != nil {
		return nil, err
	}
	for rest := list[6:]; len(rest) > 0; rest = rest[2:] {
		f := LiveField{Name: rest[0], Content: rest[1]}
		if _, packed := f.Pack(); !packed {
			if _, ok := f.Number(); !ok || len(f.Content) < LiveHex {
				return nil, ErrReply
			}
			f.Nonce, f.Content = f.Content[:LiveHex], f.Content[LiveHex:]
		}
		p.Fields = append(p.Fields, f)
	}
	switch p.Kind {
	case LiveLatest, LiveAfter, LiveWhole, LiveTorn:
		return p, nil
	}
	return nil, ErrReply
}
