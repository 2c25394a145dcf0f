package browsertest

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// The constant patience is the time limit for loading a page, which is long enough for a busy machine.
const patience = 60 * time.Second

// Browser is a running Chromium process.
type Browser struct{ ctx context.Context }

// Start starts Chromium, and stops it at the end of the test. If Chromium is not installed, the test fails.
func Start(t testing.TB) *Browser {
	t.Helper()
	program, err := find()
	require.NoError(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en-GB"),
		// Requests to other hosts fail, and never leave the machine.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf))
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx), "start "+program)
	return &Browser{ctx}
}

// The function find returns the path of the Chromium program. The function find first tries the headless shell, which
// needs half of the processor time. The function find then tries the names of Chromium in Debian, other Linux
// distributions and macOS.
func find() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser",
		"google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the browser chromium is missing on this machine: run scripts/browser.sh to install chromium")
}
