package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/live"
)

// Packing replaces the records of single calls in a live change log by packed records, each with the changes of many
// calls. A packed record leaves out changes that a later change of the same user has replaced. The result of packing
// depends only on the log in Redis, because this instance's memory may contain changes that a failover has removed from
// the log.

const (
	mostUnpacked = 128 // an instance packs a log with more records of single calls after it has appended to the log
	leftUnpacked = 256 // an instance packs a log with more records of single calls that other instances did not pack
	// keptUnpacked is the number of latest records that packing leaves unchanged, so that other instances can still
	// read them one by one.
	keptUnpacked = 64
	packTail     = 16 // number of latest packed records to which packing may add changes
	packBytes    = 1_000_000
	packFields   = 1000
)

// packWhenLong packs a live change log (log of changes to sets by API calls) that has many records of single calls.
// This instance calls packWhenLong after it has appended a record to the log.
func (l *liveLogs) packWhenLong(p int, version string, meta *script.LiveMeta) {
	l.logs[p].packed.Store(int64(meta.Packed))
	l.packBeyond(p, version, mostUnpacked)
}

// packWhenLeft packs a live change log (log of changes to sets by API calls) with many unpacked records that other
// instances stored and did not pack.
func (l *liveLogs) packWhenLeft(p int, version string) { l.packBeyond(p, version, leftUnpacked) }

func (l *liveLogs) packBeyond(p int, version string, most int64) {
	log := &l.logs[p]
	v, err := script.ParseLiveVersion(version)
	if err != nil || int64(v.Number)-log.packed.Load() <= most || !log.packing.CompareAndSwap(false, true) {
		return
	}
	l.wait.Go(func() {
		defer log.packing.Store(false)
		l.packOne.Lock() // a call for many users makes the logs of all partitions long at once
		defer l.packOne.Unlock()
		ctx, cancel := context.WithTimeout(l.ctx, l.config.Timeout)
		defer cancel()
		if err := l.pack(ctx, p); err != nil && ctx.Err() == nil {
			l.config.Logger.Warn("changes of sets in Redis were not compacted", "partition", p, "error", err)
		}
	})
}

// The method "pack" combines records of single calls with the latest packed records that are not full yet. If the live
// change log (log of changes to sets by API calls) has doubled since the last compaction, pack compacts the whole log.
func (l *liveLogs) pack(ctx context.Context, p int) error {
	page, err := l.readPage(ctx, p, "", script.LiveTail(packTail))
	if err != nil || page.Version == "" {
		return err
	}
	if page.Meta.Last-page.Meta.First > 2*page.Meta.Compacted+2*packTail {
		return l.compact(ctx, p, nil)
	}
	read := &liveReading{metaText: page.MetaText, meta: page.Meta, version: page.Version, freedText: page.Freed}
	if read.freed, err = live.DecodeFreed([]byte(page.Freed)); err != nil {
		return l.damage(p, "f", err)
	}
	if err := l.add(read, p, page); err != nil {
		return err
	}
	l.logs[p].packed.Store(int64(page.Meta.Packed))
	latest, err := script.ParseLiveVersion(page.Version)
	if err != nil {
		return err
	}
	if latest.Number-page.Meta.Packed <= mostUnpacked { // another instance was faster
		return nil
	}
	part := packPart{}
	for i := range read.fields {
		f := &read.fields[i]
		_, packed := f.Pack()
		if packed && len(f.Content) > live.RecordBytes/2 {
			continue
		}
		if n, single := f.Number(); single && n > latest.Number-keptUnpacked {
			break
		}
		if part.add(f); part.full() {
			break
		}
	}
	_, err = l.replace(ctx, p, read, &part, read.lists(), packEnd{})
	return err
}

// A packPart is a group of records in a live change log (log of changes to sets by API calls). One call of live.lua
// replaces these records.
type packPart struct {
	fields []*liveField
	bytes  int
}

func (p *packPart) add(f *liveField) {
	p.fields = append(p.fields, f)
	p.bytes += len(f.Content)
}

func (p *packPart) full() bool { return p.bytes >= packBytes || len(p.fields) >= packFields }

// compactAttempts is the maximum number of attempts of a compaction. A compaction starts again if another instance is
// packing the same live change log (log of changes to sets by API calls).
const compactAttempts = 5

// The method "compact" packs a whole live change log (log of changes to sets by API calls). The method "compact" omits
// each set's changes up to a time: the later of the time in the argument "upTo" and the time in the log. The method
// "compact" stores this time in the log.
func (l *liveLogs) compact(ctx context.Context, p int, upTo map[string]capping.Instant) error {
	for range compactAttempts {
		done, err := l.compactOnce(ctx, p, upTo)
		if done || err != nil {
			return err
		}
	}
	return errors.New("another capper instance is already compacting these records of changes to sets of users")
}

func (l *liveLogs) compactOnce(ctx context.Context, p int, upTo map[string]capping.Instant) (done bool, err error) {
	read, err := l.read(ctx, p, "", "")
	if err != nil || read == nil {
		return false, err
	}
	if read.version == "" {
		return true, nil
	}
	nonce, freed := "", maps.Clone(read.freed)
	for set, at := range upTo {
		if at > freed[set] {
			freed[set], nonce = at, newLiveName()
		}
	}
	if upTo != nil && nonce == "" { // another instance was faster
		return true, nil
	}
	read.freed = freed
	lists := read.lists()
	parts, end := read.parts(lists)
	end.nonce, end.freed = nonce, freed
	for i := range parts {
		end.last = i == len(parts)-1
		n, err := l.replace(ctx, p, read, &parts[i], lists, end)
		if err != nil || n < 0 {
			return false, err
		}
		end.kept += n
		end.nonce = ""
	}
	return true, nil
}

// A packEnd describes the changes that one call of live.lua makes to the metadata of a live change log (log of changes
// to sets by API calls). For a call that packs only the latest records, the packEnd is zero.
type packEnd struct {
	whole bool // the part is the whole log
	last  bool // the part is the last part of a compaction
	first int  // with last: the number of the first packed record that stays
	kept  int  // with last: the number of packed records outside this part
	nonce string
	freed map[string]capping.Instant // stored only if nonce is not empty
}

// The method "parts" divides a whole live change log (log of changes to sets by API calls) into parts. One call of
// live.lua replaces one part of the log. If the log is large, the result of "parts" omits long packed records whose
// changes are all still the latest of their users.
func (r *liveReading) parts(lists *live.Lists) (parts []packPart, end packEnd) {
	bytes := 0
	for i := range r.fields {
		bytes += len(r.fields[i].Content)
	}
	end = packEnd{first: r.meta.Last + 1}
	large := bytes >= packBytes || len(r.fields) >= packFields
	part := packPart{}
	for i := range r.fields {
		f := &r.fields[i]
		if k, packed := f.Pack(); packed && large && len(f.Content) > live.RecordBytes/2 && lists.Holds(f.record) {
			end.kept, end.first = end.kept+1, min(end.first, k)
			continue
		}
		if part.add(f); part.full() {
			parts, part = append(parts, part), packPart{}
		}
	}
	if len(part.fields) > 0 || len(parts) == 0 {
		parts = append(parts, part)
	}
	end.whole = !large
	return parts, end
}

// The method "replace" replaces one part of a live change log (log of changes to sets by API calls) by packed records.
// The method "replace" returns the number of new packed records, or -1 if another call has changed the log. The method
// "replace" also updates the argument "read", the copy of the log in memory.
func (l *liveLogs) replace(ctx context.Context, p int, read *liveReading, part *packPart, lists *live.Lists,
	end packEnd) (n int, err error) {
	op := &packOperation{logs: l}
	packing := &op.packing
	*packing = script.LivePacking{Version: read.version, MetaText: read.metaText, Meta: read.meta, Nonce: end.nonce}
	meta := &packing.Meta
	meta.Packs++
	var old []*live.Record
	removed := map[int]bool{}
	for _, f := range part.fields {
		packing.Remove = append(packing.Remove, f.Name)
		if k, packed := f.Pack(); packed {
			removed[k] = true
		} else if number, ok := f.Number(); ok {
			meta.Packed, meta.Nonce = number, f.Nonce
		}
		if f.record != nil {
			old = append(old, f.record)
		}
	}
	for _, record := range lists.Pack(old, end.whole) {
		meta.Last++
		packing.Names = append(packing.Names, script.PackedName(meta.Last))
		packing.Contents = append(packing.Contents, live.AppendRecord(nil, record))
	}
	for removed[meta.First] {
		meta.First++
	}
	if end.last {
		meta.First, meta.Compacted = end.first, end.kept+len(packing.Names)
	}
	if end.nonce != "" {
		packing.Freed = live.AppendFreed(nil, end.freed)
	}
	if err := l.packRun(ctx, p, op); err != nil || !op.done {
		return -1, err
	}
	read.metaText, read.meta = meta.String(), *meta
	l.logs[p].packed.Store(int64(meta.Packed))
	if end.nonce != "" {
		read.version = op.after
		if !l.applyAfter(p, op.before, op.after, end.freed) {
			l.renewSoon(p)
		}
	}
	return len(packing.Names), nil
}

func (l *liveLogs) packRun(ctx context.Context, p int, op *packOperation) error {
	return l.config.Quietly(func() *dispatch.Run {
		r := l.config.Dispatcher.NewRun(nil, true)
		r.Faults.What = "the compaction of changes of sets is"
		r.Add(op, p)
		r.Do(ctx)
		return r
	})
}

// A packOperation packs records of a live change log (log of changes to sets by API calls). If an earlier attempt has
// already packed the records, a repeated attempt detects the changed log and writes nothing.
type packOperation struct {
	logs    *liveLogs
	packing script.LivePacking

	done          bool
	before, after string
}

// The method Encode sets the arguments of live.lua.
func (o *packOperation) Encode(c *dispatch.Command) {
	config := &o.logs.config
	c.Args.LivePack(config.Scripts.Live, config.Prefixes[c.Partition], liveTTL, &o.packing)
}

// The method Stamp does nothing, because the command of a packOperation contains no time.
func (o *packOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the reply of live.lua.
func (o *packOperation) Apply(c *dispatch.Command) (n int, err error) {
	o.done, o.before, o.after, err = script.DecodeLivePacked(c.List)
	return 0, err
}

// The method "free" implements Store.Free. If a removal fails, the background work of this store retries it.
func (l *liveLogs) free(ctx context.Context, upTo map[string]capping.Instant) error {
	for p := range l.owed {
		l.owe(p, upTo, nil)
	}
	return l.settleOwed(ctx)
}

// For each set, the method "owe" stores a time in memory: the store must still remove changes up to this time from a
// live change log (log of changes to sets by API calls). The argument "freed" of the method "owe" holds these times.
// The argument "stored" of the method "owe" holds, for each set, the time up to which the changes are already removed
// from the log. If the time of a set in "freed" is not later than its time in "stored", the method "owe" ignores it.
// The method settleOwed removes the changes later.
func (l *liveLogs) owe(p int, freed, stored map[string]capping.Instant) {
	l.owing.Lock()
	defer l.owing.Unlock()
	for set, at := range freed {
		if at <= stored[set] {
			continue
		}
		if l.owed[p] == nil {
			l.owed[p] = map[string]capping.Instant{}
		}
		l.owed[p][set] = max(l.owed[p][set], at)
	}
}

// takeOwed returns the times that the method "owe" has stored for the partition, and removes them from memory. The
// caller of takeOwed must remove the live changes (changes by API calls) up to the returned times.
func (l *liveLogs) takeOwed(p int) map[string]capping.Instant {
	l.owing.Lock()
	defer l.owing.Unlock()
	owed := l.owed[p]
	l.owed[p] = nil
	return owed
}

// settleOwed removes the changes that the method "owe" has noted from the live change logs (logs of changes to sets by
// API calls). If a removal fails, its times stay in memory, and the next call of settleOwed tries the removal again.
func (l *liveLogs) settleOwed(ctx context.Context) error {
	l.freeing.Lock()
	defer l.freeing.Unlock()
	var faults []error
	for p := range l.owed {
		owed := l.takeOwed(p)
		if owed == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, l.config.Timeout)
		err := l.compact(ctx, p, owed)
		cancel()
		if err != nil {
			l.owe(p, owed, nil)
			faults = append(faults, fmt.Errorf(
				"remove changes of sets (named groups of users) from partition %d of Redis: %w", p, err))
			if len(faults) == 3 { // the store is in trouble: a later attempt follows
				break
			}
			continue
		}
	}
	return errors.Join(faults...)
}
