package script

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

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

// Script is the text of a script, with the SHA by which a server knows the text.
type Script struct{ Source, SHA string }

// New returns the script with the text.
func New(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source, hex.EncodeToString(sum[:])}
}

// Scripts holds the scripts over logs, shared records, rate budgets, pacers, counts and live changes.
type Scripts struct {
	Filter, Union, Release, Erase, Beat, Rate, Pace, Merge, Forget, AtLeast, Answers, Live *Script
}

// NewScripts builds all scripts of the store from their embedded texts.
func NewScripts() Scripts {
	return Scripts{
		Filter: New(complete(preludeSource + filterSource)), Union: New(complete(preludeSource + unionSource)),
		Release: New(complete(preludeSource + releaseSource)),
		Erase:   New(complete(preludeSource + eraseSource)), Beat: New(complete(beatSource)),
		Rate: New(complete(rateSource)),
		Pace: New(complete(paceOneSource + preludeSource + paceSource)), Merge: New(complete(mergeSource)),
		Forget:  New(complete(preludeSource + forgetSource)),
		AtLeast: New(complete(atLeastSource)), Answers: New(complete(answersSource)),
		Live: New(complete(preludeSource + liveSource)),
	}
}

// All returns every script.
func (s *Scripts) All() []*Script {
	return []*Script{s.Filter, s.Union, s.Release, s.Erase, s.Beat, s.Rate, s.Pace, s.Merge, s.Forget, s.AtLeast,
		s.Answers, s.Live}
}

// Sources returns the texts that servers load.
func (s *Scripts) Sources() (sources []string) {
	for _, one := range s.All() {
		sources = append(sources, one.Source)
	}
	return sources
}

// Run runs the script alone, and loads its text when the server does not know it.
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
