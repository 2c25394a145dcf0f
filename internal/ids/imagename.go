package ids

import (
	"fmt"
	"strconv"
	"strings"
)

// ImagePrefix begins the names that ImageName returns.
const ImagePrefix = "image:"

// ImageText returns the text of an image (64-bit number that stands for the id): 16 hexadecimal digits in lower case.
func ImageText(image uint64) string { return fmt.Sprintf("%016x", image) }

// ParseImage parses a text of 16 hexadecimal digits from ImageText, and returns the image (64-bit number that stands
// for the id).
func ParseImage(text string) (image uint64, ok bool) {
	image, err := strconv.ParseUint(text, 16, 64)
	return image, err == nil && ImageText(image) == text
}

// ImageName returns a name for a user whose id is unknown: "image:" and 16 hexadecimal digits, the user's image (64-bit
// number that stands for the id).
func ImageName(image uint64) string { return ImagePrefix + ImageText(image) }

// ParseImageName parses a name from ImageName ("image:" and 16 hexadecimal digits), and returns the image (64-bit
// number that stands for the id).
func ParseImageName(name string) (image uint64, ok bool) {
	text, found := strings.CutPrefix(name, ImagePrefix)
	if !found {
		return 0, false
	}
	return ParseImage(text)
}
