package wire

import (
	"capper/internal/capping"
)

// EncodeRelease appends the answer of a release call to dst.
func EncodeRelease(dst []byte, r *MessageRequest, results []capping.Released) (out []byte, unavailable int) {
	a := &answer{out: dst, given: r.Given, inPacked: r.InPacked}
	named := r.named(r.Users)
	released := resultsOf(named, results, capping.ReleaseDone)
	open := resultsOf(named, results, capping.ReleaseUnavailable)
	switch {
	case !r.Listed():
		one, _ := r.form()
		a.raw(`{"released_`).raw(one).raw(`":`).bitmap(released)
		a.raw(`,"unavailable_`).raw(one).raw(`":`).bitmap(open)
	case r.Given != nil:
		a.raw(`{"released":`).names(placesOf(results, capping.ReleaseDone), r.Users)
		a.raw(`,"unavailable":`).names(placesOf(results, capping.ReleaseUnavailable), r.Users)
	default:
		a.raw(`{"released":`).list(released)
		a.raw(`,"unavailable":`).list(open)
	}
	a.taken(&r.Audience)
	a.raw(`,"summary":{"requested":`).number(len(r.Users) + r.Duplicates)
	a.raw(`,"released":`).number(len(released))
	a.raw(`,"absent":`).number(len(r.Users) - len(released) - len(open))
	a.raw(`,"unavailable":`).number(len(open))
	a.raw(`,"duplicates":`).number(r.Duplicates)
	a.raw("}}\n")
	return a.out, len(open)
}

func placesOf(results []capping.Released, want capping.Released) (places []int) {
	for i, result := range results {
		if result == want {
			places = append(places, i)
		}
	}
	return places
}

func resultsOf(users []capping.UserID, results []capping.Released, want capping.Released) []capping.UserID {
	var matching []capping.UserID
	for i, result := range results {
		if result == want {
			matching = append(matching, users[i])
		}
	}
	return matching
}
