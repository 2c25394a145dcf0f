package redisstore

import (
	_ "embed"

	"capper/internal/capping/redisstore/script"
)

//go:embed beat.lua
var beatSource string

// scripts are those of commands and of beats.
type scripts struct {
	script.Scripts
	beat *script.Script
}

func newScripts() scripts {
	return scripts{Scripts: script.NewScripts(), beat: script.New(beatSource)}
}

func (s *scripts) all() []*script.Script {
	return []*script.Script{s.Filter, s.Release, s.Erase, s.beat, s.Rate}
}

// sources are what servers load.
func (s *scripts) sources() (sources []string) {
	for _, one := range s.all() {
		sources = append(sources, one.Source)
	}
	return sources
}
