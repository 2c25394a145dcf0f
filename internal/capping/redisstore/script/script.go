package script

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed prelude.lua
var preludeSource string

//go:embed filter.lua
var filterSource string

//go:embed union.lua
var unionSource string

//go:embed release.lua
var releaseSource string

//go:embed counts.lua
var countsSource string

//go:embed atleast.lua
var atLeastSource string

//go:embed answers.lua
var answersSource string

//go:embed title.lua
var titleSource string

//go:embed erase.lua
var eraseSource string

//go:embed beat.lua
var beatSource string

//go:embed live.lua
var liveSource string

//go:embed rate.lua
var rateSource string

//go:embed paceone.lua
var paceOneSource string

//go:embed pace.lua
var paceSource string

//go:embed merge.lua
var mergeSource string

//go:embed forget.lua
var forgetSource string

//go:embed return.lua
var returnSource string

//go:embed lease.lua
var leaseSource string

// A Script holds the text of a Lua script and the SHA-1 hash of this text. The command EVALSHA names the script by the
// SHA-1 hash.
type Script struct{ Source, SHA string }

// New returns a Script with the given text.
func New(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source, hex.EncodeToString(sum[:])}
}

// Scripts holds all Lua scripts that a store calls.
type Scripts struct {
	Filter, Union, Release, Erase, Beat, Rate, Pace, Merge, Forget, AtLeast, Answers, Live,
	Return, Lease, Title *Script
}

// NewScripts builds all Lua scripts of a store from the texts in this program, for the store's keyspace (distribution
// of users over Redis keys).
func NewScripts(k Keyspace) Scripts {
	build := func(texts ...string) *Script { return New(complete(k, strings.Join(texts, ""))) }
	return Scripts{
		Filter: build(preludeSource, filterSource), Union: build(preludeSource, unionSource),
		Release: build(preludeSource, releaseSource), Erase: build(preludeSource, eraseSource),
		Beat: build(beatSource), Rate: build(rateSource),
		Pace: build(paceOneSource, preludeSource, paceSource), Merge: build(mergeSource),
		Forget: build(preludeSource, forgetSource), AtLeast: build(atLeastSource), Answers: build(answersSource),
		Live: build(preludeSource, liveSource), Return: build(preludeSource, returnSource),
		Lease: build(preludeSource, leaseSource), Title: build(titleSource),
	}
}

// The method All returns every script.
func (s *Scripts) All() []*Script {
	return []*Script{s.Filter, s.Union, s.Release, s.Erase, s.Beat, s.Rate, s.Pace, s.Merge, s.Forget, s.AtLeast,
		s.Answers, s.Live, s.Return, s.Title, s.Lease}
}

// Sources returns the texts of all Lua scripts that servers must load for a store with the keyspace (distribution of
// users over Redis keys). A spread store (store whose ids are not dense) may have another depth (number of bits that
// choose the bucket) than its instances expect. Servers therefore load the scripts for both possible sizes of the hash
// fields of users.
func Sources(k Keyspace) (sources []string) {
	all := []Keyspace{k}
	if k.IsSpread() {
		all = []Keyspace{Spread(MinDepth), Spread(MaxDepth)}
	}
	for _, k := range all {
		s := NewScripts(k)
		for _, one := range s.All() {
			if !slices.Contains(sources, one.Source) {
				sources = append(sources, one.Source)
			}
		}
	}
	return sources
}

// The method Run runs the Lua script outside a pipeline. If the server does not have the script, Run loads the text of
// the script and runs the script again.
func (s *Script) Run(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd {
	cmd := client.EvalSha(ctx, s.SHA, keys, args...)
	if !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		return cmd
	}
	if err := client.ScriptLoad(ctx, s.Source).Err(); err != nil {
		cmd.SetErr(err)
		return cmd
	}
	return client.EvalSha(ctx, s.SHA, keys, args...)
}
