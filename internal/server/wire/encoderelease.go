package wire

import (
	"capper/internal/capping"
)

// EncodeRelease appends the answer of a release call to dst.
func EncodeRelease(dst []byte, r *MessageRequest, results []capping.Released) (out []byte, unavailable int) {
	a := &answer{out: dst}
	released := resultsOf(r.Users, results, capping.ReleaseDone)
	open := resultsOf(r.Users, results, capping.ReleaseUnavailable)
	if r.Bitmap {
		a.raw(`{"released_bitmap":`).bitmap(released)
		a.raw(`,"unavailable_bitmap":`).bitmap(open)
	} else {
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

func resultsOf(users []capping.UserID, results []capping.Released, want capping.Released) []capping.UserID {
	var matching []capping.UserID
	for i, result := range results {
		if result == want {
			matching = append(matching, users[i])
		}
	}
	return matching
}
