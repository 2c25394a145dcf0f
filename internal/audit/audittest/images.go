package audittest

import (
	"encoding/binary"
	"slices"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
)

// scheme converts the dense ids of a test to images and back.
var scheme = ids.New(ids.Uint64, ids.Key{1})

// IDs describes the ids whose images the functions of this file return.
func IDs() audit.IDs { return audit.IDsOf(scheme) }

// Image returns the image of a dense id.
func Image(user uint32) capping.UserID {
	return capping.UserID(scheme.Packed(binary.BigEndian.AppendUint64(nil, uint64(user))))
}

// User returns the dense id of an image.
func User(image capping.UserID) uint32 {
	id, err := scheme.BackPacked(nil, uint64(image), 0)
	if err != nil { // never happens for this kind
		panic(err)
	}
	return uint32(binary.BigEndian.Uint64(id))
}

// Images returns the images of dense ids in ascending order.
func Images(users *bitmap.Bitmap) (images []capping.UserID) {
	for user := range users.All() {
		images = append(images, Image(user))
	}
	slices.Sort(images)
	return images
}

// OfImages returns a copy of a record with images in place of dense ids.
func OfImages(r *audit.Record) *audit.Record {
	wide := *r
	wide.Groups = slices.Clone(r.Groups)
	for i := range wide.Groups {
		g := &wide.Groups[i]
		g.Images, g.Users = Images(g.Users), nil
	}
	return &wide
}

// FramesOfImages returns copies of the frames with images in place of dense ids.
func FramesOfImages(frames []audit.Frame) []audit.Frame {
	frames = slices.Clone(frames)
	for i := range frames {
		if frames[i].Record != nil {
			frames[i].Record = OfImages(frames[i].Record)
		}
	}
	return frames
}
