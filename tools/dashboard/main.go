// Program dashboard writes the dashboard of the chart joiner (U-10): go run ./dashboard FILE. Its content is data in
// panels.go; this file turns that into Grafana's format. No plug-ins are needed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "want one argument: the file to write")
		os.Exit(2)
	}
	content, err := json.MarshalIndent(dashboard(), "", "  ")
	if err == nil {
		err = os.WriteFile(os.Args[1], append(content, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// object is a JSON object. Its fields are written in the order of their names, so the file is the same each time.
type object = map[string]any

// The grid of Grafana is 24 wide. Three graphs stand beside each other, or six figures.
const (
	columns    = 24
	graphWide  = 8
	graphHigh  = 8
	figureWide = 4
	figureHigh = 4
)

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// dashboard returns the whole dashboard.
func dashboard() object {
	var panels []any
	id, x, y, high := 0, 0, 0, 0
	place := func(wide, tall int) object {
		if x+wide > columns {
			x, y, high = 0, y+high, 0
		}
		at := object{"x": x, "y": y, "w": wide, "h": tall}
		x, high = x+wide, max(high, tall)
		return at
	}
	for _, row := range rows() {
		x, y, high = 0, y+high, 0
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": row.title, "collapsed": false,
			"panels": []any{}, "gridPos": place(columns, 1)})
		for _, p := range row.panels {
			id++
			wide, tall := graphWide, graphHigh
			if p.figure {
				wide, tall = figureWide, figureHigh
			}
			panels = append(panels, p.object(id, place(wide, tall)))
		}
	}
	return object{
		"uid": "joiner", "title": "Joiner", "tags": []string{"joiner", "karpenter"}, "schemaVersion": 39, "version": 1,
		"editable": true, "refresh": "30s", "timezone": "", "time": object{"from": "now-6h", "to": "now"},
		"templating": object{"list": variables()}, "panels": panels, "annotations": object{"list": []any{}},
	}
}

func variables() []any {
	query := func(name, label, text string) object {
		return object{"name": name, "label": label, "type": "query", "datasource": source(), "query": text,
			"definition": text, "refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"}}
	}
	return []any{
		object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
		query("cluster", "Cluster", "label_values(joiner_leader, cluster)"),
		query("nodepool", "NodePool", `label_values(joiner_nodes{cluster=~"$cluster"}, nodepool)`),
	}
}

// object returns the panel in Grafana's format.
func (p panel) object(id int, at object) object {
	var targets []any
	for i, q := range p.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source(), "expr": q.expr,
			"legendFormat": q.legend, "range": true})
	}
	defaults := object{"unit": p.unit}
	made := object{"id": id, "title": p.title, "description": p.about, "datasource": source(), "gridPos": at,
		"targets": targets, "fieldConfig": object{"defaults": defaults, "overrides": []any{}}}
	if p.figure {
		made["type"] = "stat"
		made["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none"}
		return made
	}
	custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
	if p.stacked {
		custom["stacking"] = object{"mode": "normal"}
	}
	defaults["custom"], defaults["min"] = custom, 0
	made["type"] = "timeseries"
	made["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"},
		"tooltip": object{"mode": "multi", "sort": "desc"}}
	return made
}
