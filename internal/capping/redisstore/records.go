package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/pacing"
)

// HasRequest reports whether the store remembers the permit request to pacers of the group. The argument r of
// HasRequest is the hash of the request.
func (s *Store) HasRequest(ctx context.Context, group string, r pacing.Request) (bool, error) {
	return s.pacers.HasRequest(ctx, group, r)
}

// HasLog reports whether the store has a log of the target: of a pacer, or of a message or key of a pacer.
func (s *Store) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	return s.pacers.HasLog(ctx, target)
}

// recordsLife is the TTL of the Redis hash that counts pacers' stored records (remembered requests and logs). No stored
// record of pacers has a longer lifetime than recordsLife. Each addition to the hash of counts sets the TTL again.
const recordsLife = pacing.MaxWait + pacing.MaxWindow*9/8

// AddRecords adds numbers to the counts of pacers' records (remembered requests and logs) in Redis. One Redis hash
// contains the counts of pacers' records, with one field for each group of records. AddRecords tries the addition only
// once. If the Redis node of the hash does not answer, AddRecords returns an error.
func (s *Store) AddRecords(
	ctx context.Context, added map[pacing.RecordGroup]int, now time.Time,
) (map[pacing.RecordGroup]int, error) {
	if err := s.halted(); err != nil {
		return nil, err
	}
	n := s.top.Route(s.keyspace.PacerPartition(""))
	if n == nil {
		return nil, fault.ErrNoRoute
	}
	ctx, cancel := context.WithTimeout(ctx, s.top.LongestAttempt())
	defer cancel()
	groups, err := s.addRecords(ctx, n.Client(), added, now)
	if err != nil {
		s.top.RefreshSoon()
		return nil, fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	return groups, nil
}

func (s *Store) addRecords(
	ctx context.Context, client *redis.Client, added map[pacing.RecordGroup]int, now time.Time,
) (map[pacing.RecordGroup]int, error) {
	key, pipe := s.recordsKey(), client.Pipeline()
	for group, n := range added {
		pipe.HIncrBy(ctx, key, recordField(group), int64(n))
	}
	if len(added) > 0 {
		pipe.PExpire(ctx, key, recordsLife)
	}
	all := pipe.HGetAll(ctx, key)
	if err := topology.Exec(ctx, pipe); err != nil {
		return nil, err
	}
	fields, err := all.Result()
	if err != nil {
		return nil, err
	}
	groups, expired := readRecords(fields, now)
	if len(expired) > 0 {
		return groups, client.HDel(ctx, key, expired...).Err()
	}
	return groups, nil
}

// recordsKey returns the Redis key of the hash that counts pacers' records. The second colon in the key of record
// counts prevents a collision with the key of a bucket of users.
func (s *Store) recordsKey() string {
	return s.prefixes[s.keyspace.PacerPartition("")] + "pn:records"
}

// recordField returns the name of the hash field that counts a group of records: the kind, the expiry and the client of
// the group.
func recordField(g pacing.RecordGroup) string {
	return fmt.Sprintf("%c %d %s", g.Kind, g.Expires, g.Client)
}

// readRecords decodes the counts of pacers' stored records by group. The result "expired" of readRecords holds the hash
// fields of groups that have expired or cannot be decoded.
func readRecords(fields map[string]string, now time.Time) (groups map[pacing.RecordGroup]int, expired []string) {
	groups = map[pacing.RecordGroup]int{}
	for field, number := range fields {
		group, ok := parseRecordField(field)
		n, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil || n <= 0 || group.Expires <= now.Unix() {
			expired = append(expired, field)
			continue
		}
		groups[group] = int(n)
	}
	return groups, expired
}

func parseRecordField(field string) (g pacing.RecordGroup, ok bool) {
	parts := strings.SplitN(field, " ", 3)
	if len(parts) != 3 || len(parts[0]) != 1 {
		return g, false
	}
	expires, err := strconv.ParseInt(parts[1], 10, 64)
	g = pacing.RecordGroup{Client: parts[2], Kind: pacing.RecordKind(parts[0][0]), Expires: expires}
	return g, err == nil && (g.Kind == pacing.RequestRecord || g.Kind == pacing.LogRecord)
}
