package browsertest

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
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
	whole, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	counts := map[color.RGBA]int{}
	each(whole, func(_, _ int, c color.RGBA) { counts[c]++ })
	colours := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B})
	})
	palette, index := color.Palette{}, map[color.RGBA]uint8{}
	for i, c := range colours {
		if i < 256 {
			palette = append(palette, c)
		}
	}
	for _, c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(whole.Bounds(), palette)
	each(whole, func(x, y int, c color.RGBA) { out.SetColorIndex(x, y, index[c]) })
	var encoded bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, out))
	return encoded.Bytes()
}

func each(of image.Image, do func(x, y int, c color.RGBA)) {
	box := of.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			do(x, y, color.RGBAModel.Convert(of.At(x, y)).(color.RGBA))
		}
	}
}
