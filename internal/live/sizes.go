package live

import (
	"maps"
	"slices"

	"capper/internal/capping"
)

// SizesIn works like Sizes, but compares the live changes with given builds of the sets. The function asOf returns the
// time up to which the build of a set includes all changes. The fields Additions, Removals, Oldest and Newest of a Size
// describe only live changes (changes by API calls) that override these builds. The field Superseded counts all other
// live changes of the set, which have no effect.
func (l *Lists) SizesIn(asOf func(set string) capping.Instant) (sizes []Size) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(l.sets)) {
		of, upTo := l.sets[name], asOf(name)
		size := Size{Set: name, Freed: of.freed}
		for _, b := range of.blocks {
			for _, i := range b.infos {
				if decides, _ := i.in(upTo); !decides {
					continue
				}
				if i.kind() == Added {
					size.Additions++
				} else {
					size.Removals++
				}
				size.Newest = max(size.Newest, i.at())
				if size.Oldest == 0 || i.at() < size.Oldest {
					size.Oldest = i.at()
				}
			}
		}
		size.Superseded = of.counts[Added] + of.counts[Removed] - size.Additions - size.Removals
		sizes = append(sizes, size)
	}
	return sizes
}
