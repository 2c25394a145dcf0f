package browsertest

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pictures is the directory for the pictures of docs/console.md; see make screenshots.
var pictures = flag.String("pictures", "", "write the pictures of docs/console.md into this directory")

// shot is a picture of docs/console.md: a page from its top, with its full height or with Height.
type shot struct {
	name, path string
	on         Screen
	dark       bool
}

var shots = []shot{
	{"overview", "/console/", Screen{1000, 1500}, false},
	{"campaigns", "/console/campaigns", Screen{1000, 760}, false},
	{"campaign", "/console/campaign?id=reminder&channel=push", Screen{1000, 1500}, false},
	{"pressure", "/console/pressure?weeks=2", Screen{1000, 1500}, false},
	{"user", "/console/users?id=7", Screen{1000, 1400}, false},
	{"user-dark", "/console/users?id=7", Screen{1000, 900}, true},
	{"segments", "/console/segments", Screen{1000, 700}, false},
	{"limits", "/console/limits", Screen{1000, 760}, false},
	{"try", "/console/try?audience=engaged+-+country%2Fus&channel=email", Screen{1000, 1500}, false},
	{"pacers", "/console/pacers", Screen{1000, 900}, false},
	{"phone", "/console/campaign?id=reminder&channel=push", Screen{Phone.Width, 900}, false},
}

// testPictures checks that each picture shows a page without faults and is small enough for a repository. The clock
// of the service is fixed, so that unchanged pages give unchanged pictures.
func testPictures(t *testing.T, s *suite) {
	service := Serve(t, Setup{Keys: true, Audit: audited, Slowly: *pictures != "", History: true,
		Now: time.Date(2026, 3, 18, 14, 0, 0, 0, time.UTC)})
	service.Samples()
	tab := s.signIn(t, service, Admin)
	total := 0
	for _, shot := range shots {
		tab.Dark(shot.dark)
		tab.On(shot.on)
		require.Equal(t, 200, tab.Open(shot.path), shot.path)
		Eval[any](tab, unplaced, service.Dir)
		tab.On(Screen{shot.on.Width, min(shot.on.Height, Eval[int64](tab, "document.documentElement.scrollHeight"))})
		picture := small(t, tab.Picture())
		total += len(picture)
		if *pictures != "" {
			require.NoError(t, os.WriteFile(filepath.Join(*pictures, shot.name+".png"), picture, 0o644))
		}
	}
	require.Less(t, total, 600<<10, "of all pictures")
}

// unplaced replaces the path of the test directory by a typical one.
const unplaced = `(() => {
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replaceAll(%q, "/var/lib/capper");
})()`

// small reduces the picture to its 256 most frequent colours and replaces the others by the nearest of these.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	whole := image.NewRGBA(decoded.Bounds())
	draw.Draw(whole, whole.Bounds(), decoded, whole.Bounds().Min, draw.Src)
	counts := map[color.RGBA]int{}
	for i := range len(whole.Pix) / 4 {
		counts[pixel(whole, i)]++
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	palette, index := color.Palette{}, map[color.RGBA]uint8{}
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	for _, c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(whole.Bounds(), palette)
	for i := range out.Pix {
		out.Pix[i] = index[pixel(whole, i)]
	}
	var encoded bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, out))
	return encoded.Bytes()
}

// The function pixel returns the colour of the pixel with the given index.
func pixel(of *image.RGBA, i int) color.RGBA {
	return color.RGBA{of.Pix[4*i], of.Pix[4*i+1], of.Pix[4*i+2], of.Pix[4*i+3]}
}
