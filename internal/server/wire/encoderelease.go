package wire

import (
	"capper/internal/capping"
)

// EncodeRelease appends the response of a release call to dst.
func EncodeRelease(dst []byte, r *MessageRequest, results []capping.Released) (out []byte, unavailable int) {
	done, open := placesOf(results, capping.ReleaseDone), placesOf(results, capping.ReleaseUnavailable)
	a := &answer{out: dst, given: r.Given, form: r.Form}
	switch {
	case r.Form != InLists:
		one, _ := r.Form.names()
		named := r.named(r.Users)
		a.raw(`{"released_`).raw(one).raw(`":`).bitmap(pick(named, done))
		a.raw(`,"unavailable_`).raw(one).raw(`":`).bitmap(pick(named, open))
	case r.Given != nil:
		a.raw(`{"released":`).names(done, r.Users)
		a.raw(`,"unavailable":`).names(open, r.Users)
	default:
		a.raw(`{"released":`).list(pick(r.Users, done))
		a.raw(`,"unavailable":`).list(pick(r.Users, open))
	}
	a.taken(&r.Audience)
	a.raw(`,"summary":{"requested":`).number(len(r.Users) + r.Duplicates)
	a.raw(`,"released":`).number(len(done))
	a.raw(`,"absent":`).number(len(r.Users) - len(done) - len(open))
	a.raw(`,"unavailable":`).number(len(open))
	a.raw(`,"duplicates":`).number(r.Duplicates)
	a.raw("}}\n")
	return a.out, len(open)
}

// placesOf returns the positions in the request of the users for whom the release had the given result.
func placesOf(results []capping.Released, want capping.Released) (places []int) {
	for i, result := range results {
		if result == want {
			places = append(places, i)
		}
	}
	return places
}

// The function pick returns the users at the given positions of the request.
func pick(users []capping.UserID, places []int) []capping.UserID {
	picked := make([]capping.UserID, len(places))
	for n, i := range places {
		picked[n] = users[i]
	}
	return picked
}
