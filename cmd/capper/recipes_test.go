package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/testkit"
)

// recipesPage is read as it is: its configurations are those of the services, its commands are
// run, and what it shows is what came out. -update-recipes writes what comes out into it.
const recipesPage = "../../docs/recipes.md"

var updateRecipes = flag.Bool("update-recipes", false, "write what the commands of docs/recipes.md print into it")

// TestRecipes goes through the page, with a service of its own for each recipe.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(recipesPage)
	require.NoError(t, err)
	sections := regexp.MustCompile(`(?m)^## `).Split(string(page), -1)
	require.Greater(t, len(sections), 7)
	users := blocksOf(sections[1])
	for i, section := range sections[2:] {
		title, _, _ := strings.Cut(section, "\n")
		// the name is that of a directory, which YAML has to take
		t.Run(strings.ReplaceAll(title, ",", ""), func(t *testing.T) {
			blocks := blocksOf(section)
			var r *recipe
			for try := 0; try == 0 || r.late && try < 10; try++ {
				r = newRecipe(t)
				r.run(users)
				r.run(blocks)
			}
			require.False(t, r.late, "permits come too late each time")
			require.NotNil(t, r.service, "a recipe has a configuration")
			for _, b := range blocks {
				sections[i+2] = strings.Replace(sections[i+2], b.text, b.seen, 1)
			}
		})
	}
	if *updateRecipes {
		require.NoError(t, os.WriteFile(recipesPage, []byte(strings.Join(sections, "## ")), 0o644))
	}
}

// block is a part of the page that does something.
type block struct {
	kind string // yaml, console, or later
	text string
	seen string // what it should read
}

var recipeBlocks = regexp.MustCompile("(?ms)^```(yaml|console)\n(.*?)^```$|^([0-9]+[hm]) later:$")

func blocksOf(section string) (blocks []*block) {
	for _, m := range recipeBlocks.FindAllStringSubmatch(section, -1) {
		b := &block{kind: m[1], text: m[2], seen: m[2]}
		if m[3] != "" {
			b = &block{kind: "later", text: m[3], seen: m[3]}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// recipe is a service and a shell that stand as the page says.
type recipe struct {
	t       *testing.T
	dir     string
	clock   *testkit.Clock
	file    string
	service *app.Service
	late    bool // the machine was so busy that permits came too late to be used: other lines are printed
}

func newRecipe(t *testing.T) *recipe {
	return &recipe{t: t, dir: t.TempDir(), clock: testkit.NewClockAt(time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC))}
}

func (r *recipe) run(blocks []*block) {
	for _, b := range blocks {
		if r.late {
			return
		}
		switch b.kind {
		case "yaml":
			r.configure(b.text)
		case "later":
			pause, err := time.ParseDuration(b.text)
			require.NoError(r.t, err)
			r.clock.Advance(pause)
		default:
			r.console(b)
		}
	}
}

// configure starts the service, or changes its configuration.
func (r *recipe) configure(fragment string) {
	t := r.t
	r.file = filepath.Join(r.dir, "capper.yaml")
	base, _, _ := strings.Cut(embedded(r.dir, "-"), "channels:")
	write(t, r.file, base+fragment)
	if r.service != nil {
		r.reload()
		return
	}
	watcher, err := config.NewWatcher(r.file, r.clock.Now)
	require.NoError(t, err)
	log := new(testkit.Log)
	r.service, err = app.Start(t.Context(), app.Config{Watcher: watcher, Log: log, Clock: r.clock.Now})
	require.NoError(t, err, "%s", log)
	t.Cleanup(func() { require.NoError(t, r.service.Stop()) })
}

// reload waits until the service has taken the file.
func (r *recipe) reload() {
	c, err := client.New(client.Config{URL: r.url()})
	require.NoError(r.t, err)
	watcher, err := config.NewWatcher(r.file, r.clock.Now)
	require.NoError(r.t, err)
	testkit.Eventually(r.t, func() bool {
		status, err := c.Status(r.t.Context())
		require.NoError(r.t, err)
		require.Empty(r.t, status.Config.Error)
		return status.ConfigVersion == watcher.Status().Version
	})
}

func (r *recipe) url() string { return "http://" + r.service.Addr().String() }

// console runs the commands of a block and compares what they print.
func (r *recipe) console(b *block) {
	t := r.t
	var seen strings.Builder
	for _, line := range strings.SplitAfter(b.text, "\n") {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		seen.WriteString(line)
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = r.dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(segmentbuild(t))+":"+os.Getenv("PATH"))
		if r.service != nil {
			cmd.Env = append(cmd.Env, "CAPPER_URL="+r.url())
		}
		out, _ := cmd.CombinedOutput() // what it says of an error is shown
		seen.Write(out)
	}
	if r.late = strings.Contains(seen.String(), "dropped because"); r.late {
		return
	}
	if *updateRecipes {
		b.seen = steady(seen.String())
		return
	}
	require.Equal(t, steady(b.text), steady(seen.String()))
}

// steady replaces what is another one in every run.
func steady(text string) string {
	for what, with := range map[string]string{
		`in [0-9]+\.[0-9]{2} s`:                         "in 0.01 s",
		`20[0-9]{6}T[0-9]{6}\.[0-9]{3}Z-[0-9a-f]{8}`:    "20261116T080000.000Z-c54552ff",
		`configuration [0-9a-f]{12}`:                    "configuration afc7524928df",
		`generation ([^ ]+) of 20[-0-9]+T[0-9:]+\.000Z`: "generation $1 of 2026-11-16T08:00:00.000Z",
		// on a busy machine
		`(?m)^capper: (no new permits, retrying: the answer took .*|permits are available again)\n`: "",
	} {
		text = regexp.MustCompile(what).ReplaceAllString(text, with)
	}
	return text
}
