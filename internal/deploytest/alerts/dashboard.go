package alerts

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Dashboard describes a Grafana dashboard as a table of rows and panels.
type Dashboard struct {
	UID, Title, Description string
	Rows                    []Row
}

// A Row is a row of a Grafana dashboard. The title of a row is a question, and the panels of the row answer this
// question.
type Row struct {
	Question string
	Panels   []Panel
}

// A Panel is a graph or a number on a Grafana dashboard, computed by one or more Prometheus queries.
type Panel struct {
	Title, Description string
	Kind               string  // timeseries (the default) or stat
	Unit               string  // the name of a Grafana unit
	Width              int     // width in 24ths of the page; 0 means 8
	Red                float64 // threshold of bad values, as in the alerts; 0: no threshold
	RedBelow           bool    // values below Red are bad
	Stacked            bool
	Queries            []Query
}

// A Query is a PromQL expression together with the legend of its graph. In the PromQL expression, "SELECTED" is a
// placeholder for the selected jobs and instances, and "JOB" for the selected jobs.
type Query struct{ Expr, Legend string }

// schemaVersion is the version of Grafana's dashboard model. Grafana 8.5 to 12 accept dashboards of version 36 and
// migrate them.
const schemaVersion = 36

type object = map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

// JSON returns the dashboard in the JSON form that Grafana imports.
func (d *Dashboard) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(object{
		"uid": d.UID, "title": d.Title, "description": d.Description, "tags": []string{"capper"},
		"schemaVersion": schemaVersion, "version": 1, "editable": true, "graphTooltip": 1, "timezone": "browser",
		"refresh": "1m", "time": object{"from": "now-6h", "to": "now"},
		"annotations": object{"list": []object{restarts()}}, "links": []object{},
		"templating": object{"list": variables()}, "panels": d.panels(),
	}, "", "  ")
	return append(text, '\n'), err
}

// The function "restarts" returns a dashboard annotation that marks the starts of service instances.
func restarts() object {
	return object{
		"name": "Starts", "enable": true, "hide": false, "iconColor": "blue", "datasource": source,
		"expr": expand(`changes(process_start_time_seconds{SELECTED}[$__interval]) > 0`), "titleFormat": "start",
		"textFormat": "{{instance}}",
	}
}

func variables() []object {
	choice := func(name, label, query string) object {
		return object{
			"name": name, "label": label, "type": "query", "datasource": source, "query": object{"query": query,
				"refId": name},
			"definition": query, "refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".+",
			"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}, "hide": 0,
			"regex": "", "options": []object{},
		}
	}
	return []object{
		{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1,
			"hide": 0, "regex": "", "multi": false,
			"includeAll": false, "current": object{}, "options": []object{}},
		choice("job", "Job", "label_values(capper_build_info, job)"),
		choice("instance", "Instance", `label_values(capper_build_info{job=~"$job"}, instance)`),
	}
}

const (
	gridWidth   = 24
	panelWidth  = 8
	panelHeight = 8
	statHeight  = 4
)

// The method "panels" returns the panels of all dashboard rows with their positions, from left to right and from top to
// bottom.
func (d *Dashboard) panels() (list []object) {
	y := 0
	for _, row := range d.Rows {
		list = append(list, object{
			"id": len(list) + 1, "type": "row", "title": row.Question, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": gridWidth, "h": 1},
		})
		y++
		x, height := 0, 0
		for i := range row.Panels {
			p := &row.Panels[i]
			w, h := p.size()
			if x+w > gridWidth {
				x, y, height = 0, y+height, 0
			}
			list = append(list, p.json(len(list)+1, object{"x": x, "y": y, "w": w, "h": h}))
			x, height = x+w, max(height, h)
		}
		y += height
	}
	return list
}

func (p *Panel) size() (w, h int) {
	w, h = p.Width, panelHeight
	w = cmp.Or(w, panelWidth)
	if p.Kind == "stat" {
		h = statHeight
	}
	return w, h
}

func (p *Panel) json(id int, place object) object {
	kind := cmp.Or(p.Kind, "timeseries")
	defaults := object{"unit": p.Unit, "thresholds": object{"mode": "absolute", "steps": p.steps()},
		"color": object{"mode": "thresholds"}}
	if kind == "timeseries" {
		defaults["min"], defaults["custom"], defaults["color"] = 0, p.lines(), object{"mode": "palette-classic"}
	}
	return object{
		"id": id, "type": kind, "title": p.Title, "description": p.Description, "gridPos": place, "datasource": source,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": options(kind),
		"targets": p.targets(kind),
	}
}

// The method "steps" returns the thresholds of a panel: Grafana draws bad values in red.
func (p *Panel) steps() []object {
	below, above := "green", "red"
	if p.RedBelow {
		below, above = above, below
	}
	steps := []object{{"color": below, "value": nil}}
	if p.Red != 0 {
		steps = append(steps, object{"color": above, "value": p.Red})
	}
	return steps
}

func (p *Panel) lines() object {
	style := object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false,
		"stacking": object{"mode": "none", "group": "A"}, "thresholdsStyle": object{"mode": "off"}}
	if p.Stacked {
		style["stacking"], style["fillOpacity"] = object{"mode": "normal", "group": "A"}, 40
	}
	if p.Red != 0 {
		style["thresholdsStyle"] = object{"mode": "line"}
	}
	return style
}

func options(kind string) object {
	if kind == "stat" {
		return object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto",
			"textMode": "auto",
		}
	}
	return object{
		"legend":  object{"showLegend": true, "displayMode": "list", "placement": "bottom", "calcs": []string{}},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
}

func (p *Panel) targets(kind string) (list []object) {
	for i, q := range p.Queries {
		list = append(list, object{
			"refId": string(rune('A' + i)), "datasource": source, "editorMode": "code", "expr": expand(q.Expr),
			"legendFormat": q.Legend,
			"range":        true, "instant": false,
		})
	}
	return list
}

func expand(expr string) string {
	return strings.NewReplacer("SELECTED", `job=~"$job", instance=~"$instance"`, "JOB", `job=~"$job"`).Replace(expr)
}
