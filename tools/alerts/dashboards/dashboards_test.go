package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/joiner-autoscaler/joiner/charts"
)

// U-10: an alert without its thresholds has series if its metrics have.
func TestU10_AnAlertIsAskedForWithoutItsThresholds(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`max by (a) (x{b="c"}) == 1`:                `max by (a) (x{b="c"})`,
		`0 < x`:                                     `x`,
		`x > y`:                                     `x - y`,
		`x > on (a) group_left () y`:                `x - on (a) group_left () y`,
		`time() - x > 60 and on (a) y > 0`:          `time() - x and on (a) y`,
		`x > 0 unless y > 1`:                        `x and y`,
		`max(x) < 1 or absent(x)`:                   `max(x)`,
		`absent(x{a="b"})`:                          `x{a="b"}`,
		`sum(x > 0 or (y unless y offset 15m)) > 0`: `sum(x)`,
		`x / x offset 1d > 2`:                       `x / x`,
		`increase(x[1h] offset 5m) >= 3`:            `increase(x[1h])`,
		`max_over_time((x > 1)[10m:1m]) > 1`:        `max_over_time((x)[10m:1m])`,
		`-x > 1`:                                    `-x`,
	} {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(given)
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		if got := without(expr).String(); got != want {
			t.Errorf("%s becomes %s, want %s", given, got, want)
		}
	}
}

// U-10: every query of the dashboard and every alert is evaluated, each under its own name. The table of those that
// return nothing has no outdated entry.
func TestU10_EachQueryHasAName(t *testing.T) {
	t.Parallel()
	targets, err := parse([]string{charts.Joiner + "=a:1", charts.Operator + "=a:2", charts.Webhook + "=a:3"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := queries(targets)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, q := range all {
		if names[q.name] {
			t.Errorf("there are two queries %s", q.name)
		}
		names[q.name] = true
		if strings.Contains(q.text, "$") {
			t.Errorf("%s has a variable without a value: %s", q.name, q.text)
		}
	}
	const panels, alerts, variables, others = 50, 28, 2, 130
	if len(all) < panels+alerts+variables+others {
		t.Errorf("only %d queries: are all of them still read?", len(all))
	}
	for name := range quiet() {
		if !names[name] {
			t.Errorf("the table of those that may return nothing has %q, which is no query", name)
		}
	}
}

// U-10: queries about scraped metrics return series; the others are named and counted.
func TestU10_ASilentQueryIsNamed(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	nodes := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "joiner_nodes"}, []string{"nodepool", "state"})
	// without a plan: no quantile
	plans := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "joiner_plan_duration_seconds"})
	registry.MustRegister(nodes, plans)
	nodes.WithLabelValues("default", "ready").Set(2)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	const every = 200 * time.Millisecond
	all, out := []target{{charts.Joiner, strings.TrimPrefix(server.URL, "http://")}}, bytes.Buffer{}
	silent, err := run(t.Context(), all, every, strings.NewReader(""), &out)
	if err != nil {
		t.Fatal(err)
	}
	said := out.String()
	for _, part := range []string{"ok      Now/Nodes: 1 series", "ok      variable/nodepool: 1 series",
		"SILENT  Now/Leader returns nothing: ",
		"SILENT  alert JoinerPaused/info returns nothing: ", "SILENT  Controller/Duration of a plan 1 returns nothing",
		"quiet   variable/cluster: "} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
	if named := strings.Count(said, "SILENT"); silent != named || silent == 0 {
		t.Errorf("%d are counted, %d are named", silent, named)
	}
}

// U-10, U-36: a program that does not answer is an error, and so is an argument that names no chart.
func TestU10_WhatCannotBeScrapedIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	nowhere := []target{{charts.Joiner, strings.TrimPrefix(server.URL, "http://")}}
	w, err := open(nowhere, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	if err := w.settle(t.Context(), nowhere, time.Second); err == nil ||
		!strings.Contains(err.Error(), "joiner at 127.0.0.1:") {
		t.Errorf("%v, want an error that names the program", err)
	}
	for _, wrong := range [][]string{nil, {"joiner"}, {"joiner="}, {"nobody=a:1"}} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	var broken io.Reader = errReader{}
	if _, err := run(t.Context(), nowhere, time.Second, broken, io.Discard); err == nil {
		t.Error("an input that breaks is taken for one that ends")
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
