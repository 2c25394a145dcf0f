package browsertest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gallery is a directory for pictures of every page, for people who look at them; see make gallery.
var gallery = flag.String("gallery", "", "write pictures of every page at each width into this directory")

// testGallery takes a picture of every page at the three widths, in light and dark colours, when asked.
func testGallery(t *testing.T, s *suite) {
	if *gallery == "" {
		return
	}
	service := Serve(t, Setup{Keys: true, Audit: audited, History: true,
		Now: time.Date(2026, 3, 18, 14, 0, 0, 0, time.UTC)})
	service.Samples()
	tab := s.signIn(t, service, Admin)
	require.NoError(t, os.MkdirAll(*gallery, 0o755))
	for _, shot := range shots {
		for _, width := range []int64{1440, 768, Phone.Width} {
			for _, dark := range []bool{false, true} {
				tab.Dark(dark)
				tab.On(Screen{width, 900})
				require.Equal(t, 200, tab.Open(shot.path), shot.path)
				height := Eval[int64](tab, "document.documentElement.scrollHeight")
				t.Logf("%s at %d: %d pixels high, %d bytes", shot.name, width, height,
					Eval[int](tab, "new Blob([document.documentElement.outerHTML]).size"))
				tab.On(Screen{width, min(height, 6000)})
				colours := map[bool]string{false: "light", true: "dark"}[dark]
				name := fmt.Sprintf("%s-%d-%s.png", shot.name, width, colours)
				require.NoError(t, os.WriteFile(filepath.Join(*gallery, name), tab.Picture(), 0o644))
			}
		}
	}
}
