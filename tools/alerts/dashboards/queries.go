package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
)

// query is a query, and what is expected of it.
type query struct {
	name, text string
	quiet      string // why it returns nothing; empty: it has to return series
}

// chosen replaces the variables of the dashboard by their values before a user has chosen any: everything.
func chosen(text string) string {
	return strings.NewReplacer("$cluster", ".*", "$nodepool", ".*", "$job", ".*", "$any", ".*", "$__rate_interval",
		"1m").Replace(text)
}

//go:embed karpenter.txt
var karpenter string

// ofKarpenter returns the queries of dashboards and alerts that were made for Karpenter (K-13).
func ofKarpenter() (all []query) {
	for line := range strings.Lines(karpenter) {
		name, text, is := strings.Cut(strings.TrimSpace(line), " | ")
		if is && !strings.HasPrefix(line, "#") {
			all = append(all, query{name: name, text: chosen(text)})
		}
	}
	return all
}

// queries returns the queries of the dashboard, of its variables, of the alerts of the scraped charts, and those that
// were made for Karpenter.
func queries(targets []target) (all []query, err error) {
	if all, err = ofDashboard(); err != nil {
		return nil, err
	}
	for _, t := range targets {
		more, err := ofAlerts(t)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		if t.chart == charts.Joiner {
			all = append(all, ofKarpenter()...)
		}
	}
	reasons := quiet()
	for i := range all {
		all[i].quiet = reasons[all[i].name]
	}
	return all, nil
}

// ofDashboard returns the queries of the panels and of the variables. Those of panels are named ROW/PANEL, with a
// number if the panel has several.
func ofDashboard() (all []query, err error) {
	content, err := charts.Files().ReadFile(charts.Joiner + "/files/dashboard.json")
	if err != nil {
		return nil, err
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	if err := json.Unmarshal(content, &board); err != nil {
		return nil, fmt.Errorf("the dashboard: %w", err)
	}
	row := ""
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			row = p.Title
		}
		for i, t := range p.Targets {
			name := row + "/" + p.Title
			if len(p.Targets) > 1 {
				name += fmt.Sprintf(" %d", i+1)
			}
			all = append(all, query{name: name, text: chosen(t.Expr)})
		}
	}
	for _, v := range board.Templating.List {
		inside, is := strings.CutPrefix(v.Query, "label_values(")
		if !is {
			continue // the data source
		}
		at := strings.LastIndex(inside, ",")
		values, err := labelled(chosen(inside[:max(at, 0)]), strings.Trim(inside[max(at, 0):], ", )"))
		if err != nil {
			return nil, fmt.Errorf("variable %s of the dashboard: %w", v.Name, err)
		}
		all = append(all, query{name: "variable/" + v.Name, text: values})
	}
	return all, nil
}

// labelled returns a query for the series of a selector that have a label: a variable offers the values of that label.
func labelled(selector, label string) (string, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(selector)
	if err != nil {
		return "", err
	}
	v, is := expr.(*parser.VectorSelector)
	if !is {
		return "", fmt.Errorf("%q is no selector of series", selector)
	}
	has, err := labels.NewMatcher(labels.MatchNotEqual, label, "")
	if err != nil {
		return "", err
	}
	v.LabelMatchers = append(v.LabelMatchers, has)
	return v.String(), nil
}

// ofAlerts returns the expressions of a chart's alerts without their thresholds.
func ofAlerts(t target) (all []query, err error) {
	content, err := charts.Alerts(t.chart, t.namespace())
	if err != nil {
		return nil, err
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("the alerts of chart %s: %w", t.chart, err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
			if err != nil {
				return nil, fmt.Errorf("alert %s: %w", rule.Alert, err)
			}
			all = append(all, query{name: "alert " + rule.Alert + "/" + rule.Labels["severity"],
				text: without(expr).String()})
		}
	}
	return all, nil
}

// verdict says what a query returned, and whether that is bad.
func (q query) verdict(series int) (said string, bad bool) {
	switch {
	case series > 0 && q.quiet != "":
		return fmt.Sprintf("LOUD    %s returns %d series; the table says that it returns none: %s", q.name, series,
			q.quiet), true
	case series > 0:
		return fmt.Sprintf("ok      %s: %d series", q.name, series), false
	case q.quiet != "":
		return fmt.Sprintf("quiet   %s: %s", q.name, q.quiet), false
	}
	return fmt.Sprintf("SILENT  %s returns nothing: %s", q.name, q.text), true
}
