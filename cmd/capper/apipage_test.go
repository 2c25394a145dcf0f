package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePageOfTheAPIShowsEveryKey runs the calls of docs/api.md in their order, with the service of scripts/run.sh.
// The page must show every key of an answer; the values may be others.
func TestThePageOfTheAPIShowsEveryKey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	url, calls := serveAsMakeRun(t), 0
	var elsewhere []string // calls that need another service
	for _, example := range examplesOf(string(page)) {
		command := strings.ReplaceAll(example.command, "http://127.0.0.1:8080", url)
		out, err := exec.Command("bash", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		if !strings.HasPrefix(string(out), "{") {
			continue // of a command that prints no answer
		}
		calls++
		if !strings.Contains(example.answer, "…") {
			require.True(t, json.Valid([]byte(example.answer)), "docs/api.md: the answer to %s", example.command)
		}
		shown, got := keysOf(example.answer), keysOf(string(out))
		if slices.Contains(got, "error") && !slices.Contains(shown, "error") {
			elsewhere = append(elsewhere, example.command)
			continue
		}
		for _, key := range got {
			require.Contains(t, shown, key, "docs/api.md: the answer to %s", example.command)
		}
	}
	require.Greater(t, calls, 40)
	require.Len(t, elsewhere, 4, "calls to UUIDs, to a later generation, to another message, and to Redis")
}

// apiExample is a call of the page with the answer that the page shows.
type apiExample struct{ command, answer string }

func examplesOf(page string) (examples []apiExample) {
	for _, block := range regexp.MustCompile("(?ms)^```\\w*\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			end := strings.Index(part, "\n{")
			if end < 0 || !strings.HasPrefix(part, "curl ") {
				continue
			}
			examples = append(examples, apiExample{part[:end], part[end:]})
		}
	}
	return examples
}

var jsonKey = regexp.MustCompile(`"([a-z_0-9]+)":`)

// keysOf returns the keys of a JSON text, each once. The text may have gaps.
func keysOf(text string) (keys []string) {
	for _, m := range jsonKey.FindAllStringSubmatch(text, -1) {
		keys = append(keys, m[1])
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// serveAsMakeRun serves testdata/capper.yaml with the segments of scripts/run.sh, and the additions that the page
// names.
func serveAsMakeRun(t *testing.T) (url string) {
	t.Helper()
	dir := t.TempDir()
	script := readFile(t, "../../scripts/run.sh")
	found := regexp.MustCompile(`(?s)build/bin/segmentbuild build --to "\$dir/segments"(.*?)\n\n`).FindStringSubmatch(script)
	require.NotNil(t, found)
	build := exec.Command("bash", "-c", fmt.Sprintf("%s build --to %q %s", segmentbuild(t), dir+"/segments", found[1]))
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := filepath.Join(dir, "capper.yaml")
	text := readFile(t, "../../testdata/capper.yaml")
	for _, change := range [][2]string{
		{"listen: 127.0.0.1:8080", "listen: 127.0.0.1:0"},
		{"engaged: active | vip}", "engaged: active | vip}\nsets: {sms-stop: {live: true}}"},
		{"  twilio:", "  sender: {rate: 1/s, per: key}\n  twilio:"},
	} {
		require.Contains(t, text, change[0])
		text = strings.Replace(text, change[0], change[1], 1)
	}
	write(t, file, text)
	p := serve(t, file)
	for _, campaign := range []string{"welcome", "reminder"} {
		out, err := exec.Command("capper", "filter", "--url", p.url, "--message-id", campaign, "--channel", "push",
			"../../testdata/audience.txt").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return p.url
}
