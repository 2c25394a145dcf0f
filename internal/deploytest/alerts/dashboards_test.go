package alerts

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the dashboards anew")

// dashboards are those that are shipped, by their file.
func dashboards() map[string]*Dashboard {
	return map[string]*Dashboard{"grafana/capper-service.json": Service(), "grafana/capper-segments.json": Segments()}
}

// The files are what the tables say.
func TestDashboardsAreThoseOfTheTables(t *testing.T) {
	t.Parallel()
	for name, d := range dashboards() {
		text, err := d.JSON()
		require.NoError(t, err)
		if *update {
			require.NoError(t, os.WriteFile(shipped(name), text, 0o644))
		}
		file, err := os.ReadFile(shipped(name))
		require.NoError(t, err)
		require.Equal(t, string(text), string(file), "go test ./internal/deploytest/alerts -run TestDashboards -update")
	}
}

// Of Grafana's model, what may stand in a dashboard of ours; other fields are refused.
type model struct {
	UID, Title, Description, Timezone, Refresh string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Links                                      []any
	Annotations                                struct {
		List []struct {
			Name, IconColor, Expr, TitleFormat, TextFormat string
			Enable, Hide                                   bool
			Datasource                                     reference
		}
	}
	Templating struct{ List []variable }
	Panels     []picture
}

type reference struct{ Type, UID string }

type variable struct {
	Name, Label, Type, Definition, AllValue, Regex string
	Query                                          any
	Datasource                                     *reference
	Refresh, Sort, Hide                            int
	Multi, IncludeAll                              bool
	Current                                        struct {
		Selected    bool
		Text, Value []string
	}
	Options []any
}

type picture struct {
	ID                       int
	Type, Title, Description string
	Collapsed                *bool
	Panels                   []any
	GridPos                  struct{ X, Y, W, H int }
	Datasource               *reference
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Min        *float64
			Custom     map[string]any
			Color      struct{ Mode string }
			Thresholds struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
		Overrides []any
	}
	Options map[string]any
	Targets []struct {
		RefID, Expr, LegendFormat, EditorMode string
		Datasource                            reference
		Range, Instant                        bool
	}
}

// grafanaUnits are those of Grafana's list (packages/grafana-data/src/valueFormats/categories.ts) that we use.
var grafanaUnits = []string{"none", "short", "percentunit", "bytes", "s", "reqps", "cps"}

func read(t *testing.T, name string) (m model) {
	text, err := os.ReadFile(shipped(name))
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&m))
	return m
}

// What Grafana wants of a dashboard, and what people do.
func TestDashboardsAreWellMade(t *testing.T) {
	t.Parallel()
	of := reference{"prometheus", "${datasource}"}
	for name := range dashboards() {
		t.Run(name, func(t *testing.T) {
			m := read(t, name)
			require.Equal(t, schemaVersion, m.SchemaVersion)
			require.LessOrEqual(t, len(m.UID), 40)
			var variables []string
			for _, v := range m.Templating.List {
				variables = append(variables, v.Name)
			}
			require.Equal(t, []string{"datasource", "job", "instance"}, variables)
			ids, taken, titles := map[int]bool{}, map[[2]int]string{}, map[string]bool{}
			for i := range m.Panels {
				p := &m.Panels[i]
				require.False(t, ids[p.ID], "id %d twice", p.ID)
				require.False(t, titles[p.Title], "%q twice", p.Title)
				ids[p.ID], titles[p.Title] = true, true
				occupy(t, taken, p)
				if p.Type == "row" {
					require.Regexp(t, `\?$`, p.Title, "a row asks a question")
					require.NotEqual(t, len(m.Panels)-1, i, "a row without panels")
					continue
				}
				require.Contains(t, []string{"timeseries", "stat"}, p.Type)
				require.Regexp(t, `[.]$`, p.Description, p.Title)
				require.Contains(t, grafanaUnits, p.FieldConfig.Defaults.Unit, p.Title)
				require.Equal(t, &of, p.Datasource)
				require.NotEmpty(t, p.Targets)
				refs := []string{}
				for _, q := range p.Targets {
					require.NotContains(t, refs, q.RefID)
					refs = append(refs, q.RefID)
					require.Equal(t, of, q.Datasource)
					require.NotEmpty(t, q.LegendFormat, p.Title)
					require.NotContains(t, q.Expr, "SELECTED")
					require.Contains(t, q.Expr, "$job", "%s: every query goes by the variables", p.Title)
				}
				steps := p.FieldConfig.Defaults.Thresholds.Steps
				require.Nil(t, steps[0].Value, "the first step has no value")
				if p.Type == "timeseries" {
					require.Equal(t, true, p.Options["legend"].(map[string]any)["showLegend"])
				}
			}
		})
	}
}

// occupy takes the panel's place in the grid of 24 columns.
func occupy(t *testing.T, taken map[[2]int]string, p *picture) {
	at := p.GridPos
	require.Positive(t, at.W)
	require.Positive(t, at.H)
	require.GreaterOrEqual(t, at.X, 0)
	require.LessOrEqual(t, at.X+at.W, gridWidth, p.Title)
	for x := at.X; x < at.X+at.W; x++ {
		for y := at.Y; y < at.Y+at.H; y++ {
			require.Empty(t, taken[[2]int{x, y}], "%s lies on it", p.Title)
			taken[[2]int{x, y}] = p.Title
		}
	}
}

// Red lines of panels are the numbers of alerts: each stands in an expression of the rules.
func TestRedLinesAreThoseOfAlerts(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(shipped("prometheus/capper.rules.yaml"))
	require.NoError(t, err)
	in := map[float64]string{
		14.4: "> 14.4 * 0.001", .0144: "> 14.4 * 0.001", .144: "> 14.4 * 0.01", 2.5: `le="2.5"`,
		.8: "process_max_fds > 0.8", 60: "capper_store_unheard_seconds > 60",
		10: "> 10", 604800: "< 7 * 86400", tooOld: "> 26 * 3600", 48 * 3600: "> 48 * 3600", .5: "< 0.5 *", 1: "> 0",
	}
	for _, d := range dashboards() {
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				if p.Red == 0 {
					continue
				}
				require.Contains(t, in, p.Red, p.Title)
				require.Contains(t, string(rules), in[p.Red], p.Title)
			}
		}
	}
}
