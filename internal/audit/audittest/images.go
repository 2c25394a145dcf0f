package audittest

import (
	"encoding/binary"
	"slices"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
)

// The variable scheme converts the dense ids (32-bit numbers) of a test to id images (64-bit hashes) and back.
var scheme = ids.New(ids.Uint64, ids.Key{1})

// IDs describes the kind and key of the user ids in the tests with id images (64-bit hashes).
func IDs() audit.IDs { return audit.IDsOf(scheme) }

// Image returns the id image (64-bit hash) of a dense id (32-bit number).
func Image(user uint32) capping.UserID {
	return capping.UserID(scheme.Packed(binary.BigEndian.AppendUint64(nil, uint64(user))))
}

// User returns the dense id (32-bit number) that has the given id image (64-bit hash).
func User(image capping.UserID) uint32 {
	id, err := scheme.BackPacked(nil, uint64(image), 0)
	if err != nil { // never happens for this kind
		panic(err)
	}
	return uint32(binary.BigEndian.Uint64(id))
}

// Images returns the id images (64-bit hashes) of dense ids, in ascending order of the images.
func Images(users *bitmap.Bitmap) (images []capping.UserID) {
	for user := range users.All() {
		images = append(images, Image(user))
	}
	slices.Sort(images)
	return images
}

// OfImages returns a copy of an audit record with id images (64-bit hashes) in place of dense ids.
func OfImages(r *audit.Record) *audit.Record {
	wide := *r
	wide.Groups = slices.Clone(r.Groups)
	for i := range wide.Groups {
		g := &wide.Groups[i]
		g.Images, g.Users = Images(g.Users), nil
	}
	return &wide
}

// FramesOfImages returns copies of the frames (entries) of an audit file with id images (64-bit hashes) in place of
// dense ids.
func FramesOfImages(frames []audit.Frame) []audit.Frame {
	frames = slices.Clone(frames)
	for i := range frames {
		if frames[i].Record != nil {
			frames[i].Record = OfImages(frames[i].Record)
		}
	}
	return frames
}
