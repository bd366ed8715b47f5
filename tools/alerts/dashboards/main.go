// Command dashboards is a Prometheus beside running programs (U-10). It scrapes them with Prometheus' own code while
// something else keeps them busy. Then it evaluates every query of the dashboard, its variables, and every alert of
// the charts. It exits with 1 if a query returned nothing, unless quiet.go has the reason, or if a query of quiet.go
// returned something.
//
//	dashboards [--every 1s] CHART=HOST:PORT...
//
// CHART is the chart of the program at that address: joiner, joiner-operator or joiner-webhook. It scrapes until its
// standard input ends, so that whoever starts it decides when to evaluate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/charts"
)

// The exit codes are those of joinerctl (U-30).
const (
	found   = 1
	unready = 2
)

func main() {
	every := flag.Duration("every", time.Second, "time between two scrapes")
	flag.Parse()
	targets, err := parse(flag.Args())
	if err == nil && *every <= 0 {
		err = fmt.Errorf("--every is %s: it must be longer than 0", *every)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(unready)
	}
	silent, err := run(context.Background(), targets, *every, os.Stdin, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(unready)
	case silent > 0:
		os.Exit(found)
	}
}

// parse reads arguments CHART=HOST:PORT.
func parse(arguments []string) (targets []target, err error) {
	known := []string{charts.Joiner, charts.Operator, charts.Webhook}
	for _, argument := range arguments {
		chart, address, whole := strings.Cut(argument, "=")
		if !whole || address == "" || !slices.Contains(known, chart) {
			return nil, fmt.Errorf("argument %q: want CHART=HOST:PORT, and of the charts one of %s", argument,
				strings.Join(known, ", "))
		}
		targets = append(targets, target{chart, address})
	}
	if len(targets) == 0 {
		return nil, errors.New("no argument: want CHART=HOST:PORT for each program that runs")
	}
	return targets, nil
}

// run scrapes until the input ends, says what each query returned, and how many returned nothing without a reason.
func run(ctx context.Context, targets []target, every time.Duration, until io.Reader,
	out io.Writer) (silent int, err error) {
	asked, err := queries(targets)
	if err != nil {
		return 0, err
	}
	p, err := open(targets, every)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, err := io.Copy(io.Discard, until); err != nil {
		return 0, fmt.Errorf("reading standard input, whose end ends the scraping: %w", err)
	}
	if err := p.settle(ctx, targets, settleTimeout); err != nil {
		return 0, err
	}
	began, end := p.began, time.Now()
	for _, q := range asked {
		series, err := p.series(ctx, q.text, began, end)
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", q.name, q.text, err)
		}
		said, bad := q.verdict(series)
		if bad {
			silent++
		}
		if _, err := fmt.Fprintln(out, said); err != nil {
			return 0, err
		}
	}
	_, err = fmt.Fprintf(out, "%d queries over %s of scrapes; %d of them are silent without a reason\n", len(asked),
		end.Sub(began).Round(time.Second), silent)
	return silent, err
}
