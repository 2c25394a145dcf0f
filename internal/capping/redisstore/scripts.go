package redisstore

import (
	_ "embed"

	"capper/internal/capping/redisstore/script"
)

//go:embed beat.lua
var beatSource string

//go:embed sign.lua
var signSource string

//go:embed rights.lua
var rightsSource string

// scripts are the engine's scripts, then those about the servers.
type scripts struct {
	script.Scripts
	beat, sign, rights *script.Script
}

func newScripts() scripts {
	return scripts{
		Scripts: script.NewScripts(),
		beat:    script.New(beatSource), sign: script.New(signSource), rights: script.New(rightsSource),
	}
}

// all are those that calls and beats use.
func (s *scripts) all() []*script.Script {
	return []*script.Script{s.Filter, s.Release, s.Erase, s.beat, s.sign, s.Rate}
}
