package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// samples bounds what one query may load: minutes of all series, a sample a second.
	samples = 50_000_000
	// queryTimeout bounds one query, settleTimeout two further scrapes of each target.
	queryTimeout, settleTimeout = time.Minute, time.Minute
	// lookback is Prometheus' own.
	lookback = 5 * time.Minute
	// lastScrapes is how many scrapes must follow the last event: with fewer than two there is no rate.
	lastScrapes = 2
)

// target is a program that is scraped: the program of a chart.
type target struct{ chart, address string }

// namespace returns the namespace in which the chart counts as released; each has its own, as in production.
func (t target) namespace() string { return t.chart }

// watcher is a Prometheus without its server: discovery of fixed targets, scrapes, storage and engine.
type watcher struct {
	dir    string
	db     *tsdb.DB
	scrape *scrape.Manager
	engine *promql.Engine
	began  time.Time
	every  time.Duration
	ended  chan error
}

// open begins to scrape.
func open(targets []target, every time.Duration) (*watcher, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "global: {scrape_interval: %s, scrape_timeout: %s}\nscrape_configs:\n", model.Duration(every),
		model.Duration(every))
	groups := map[string][]*targetgroup.Group{}
	for _, t := range targets {
		fmt.Fprintf(&text, "- job_name: %s\n", t.chart)
		groups[t.chart] = append(groups[t.chart], &targetgroup.Group{Source: t.address,
			Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(t.address)}},
			// What a PodMonitor of the chart adds.
			Labels: model.LabelSet{"namespace": model.LabelValue(t.namespace()),
				"pod": model.LabelValue(t.chart + "-0")}})
	}
	settings, err := config.Load(text.String(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "dashboards-")
	if err != nil {
		return nil, err
	}
	w := &watcher{dir: dir, every: every, began: time.Now(), ended: make(chan error, 1)}
	if w.db, err = tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w.scrape, err = scrape.NewManager(&scrape.Options{DiscoveryReloadOnStartup: true}, slog.New(slog.DiscardHandler),
		nil, nil, w.db, prometheus.NewRegistry())
	if err == nil {
		err = w.scrape.ApplyConfig(settings)
	}
	if err != nil {
		return nil, errors.Join(err, w.db.Close(), os.RemoveAll(dir))
	}
	w.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: samples, Timeout: queryTimeout, LookbackDelta: lookback,
		Parser: parser.NewParser(parser.Options{})})
	found := make(chan map[string][]*targetgroup.Group, 1)
	found <- groups
	go func() { w.ended <- w.scrape.Run(found) }()
	return w, nil
}

// settle waits until each target was scraped often enough after the last event. A target that does not answer is an
// error.
func (w *watcher) settle(ctx context.Context, targets []target, within time.Duration) error {
	waits, cancel := context.WithTimeout(ctx, within) // for the scrapes: a query has a time of its own
	defer cancel()
	again, from := time.NewTicker(w.every), time.Now()
	defer again.Stop()
	for {
		missing, now := "", time.Now()
		for _, t := range targets {
			since := model.Duration(max(now.Sub(from), time.Millisecond).Truncate(time.Millisecond))
			query := fmt.Sprintf("sum_over_time(up{job=%q}[%s])", t.chart, since)
			answer, err := w.at(ctx, query, now)
			if err != nil {
				return err
			}
			if len(answer) != 1 || answer[0].F < lastScrapes {
				missing = fmt.Sprintf("%s at %s was scraped %v times since all has happened", t.chart, t.address,
					answer)
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-waits.Done():
			return fmt.Errorf("%s; want %d times within %s", missing, lastScrapes, within)
		case err := <-w.ended:
			return fmt.Errorf("scraping has ended: %w", err)
		case <-again.C:
		}
	}
}

// at evaluates a query at one time.
func (w *watcher) at(ctx context.Context, text string, now time.Time) (promql.Vector, error) {
	query, err := w.engine.NewInstantQuery(ctx, w.db, nil, text, now)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	return query.Exec(ctx).Vector()
}

// series evaluates a query at each scrape from began to end. It returns how many series had a number at least once.
func (w *watcher) series(ctx context.Context, text string, began, end time.Time) (count int, err error) {
	query, err := w.engine.NewRangeQuery(ctx, w.db, nil, text, began, end, w.every)
	if err != nil {
		return 0, err
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return 0, err
	}
	for _, series := range matrix {
		for _, point := range series.Floats {
			if !math.IsNaN(point.F) {
				count++
				break
			}
		}
	}
	return count, nil
}

// close ends the scrapes and removes the storage.
func (w *watcher) close() error {
	w.scrape.Stop()
	return errors.Join(w.db.Close(), os.RemoveAll(w.dir))
}
