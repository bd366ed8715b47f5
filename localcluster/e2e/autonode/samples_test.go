package autonode

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// samples are an API server's counts: lines of its metrics.
type samples []string

// scrape asks the management cluster's API server for its metrics.
func (f *feeds) scrape() samples {
	f.t.Helper()
	to, err := rest.HTTPClientFor(f.admin)
	if err != nil {
		f.t.Fatal(err)
	}
	response, err := to.Get(f.admin.Host + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		f.t.Fatalf("the API server's metrics: %s, %v", response.Status, err)
	}
	return strings.Split(string(text), "\n")
}

// each visits the values of a metric that have these labels.
func (s samples) each(metric string, labels []string, visit func(line string, value float64)) {
	for _, line := range s {
		name, value, _ := strings.Cut(line, "} ")
		lacks := func(label string) bool { return !strings.Contains(name, label) }
		if !strings.HasPrefix(line, metric+"{") || slices.ContainsFunc(labels, lacks) {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			visit(name, v)
		}
	}
}

func (s samples) sum(metric string, labels ...string) (sum float64) {
	s.each(metric, labels, func(_ string, value float64) { sum += value })
	return sum
}

// refused counts requests answered with 429.
func (s samples) refused() float64 { return s.sum("apiserver_request_total", `code="429"`) }

// tooMuch counts requests refused by priority and fairness.
func (s samples) tooMuch() float64 { return s.sum("apiserver_flowcontrol_rejected_requests_total") }

// count returns the number of requests with these labels since the samples since.
func (s samples) count(since samples, labels ...string) float64 {
	const metric = "apiserver_request_duration_seconds_count"
	return s.sum(metric, labels...) - since.sum(metric, labels...)
}

// quantile returns the time within which a part of those requests was answered. It is interpolated between the bounds
// of the API server's buckets.
func (s samples) quantile(part float64, since samples, labels ...string) time.Duration {
	within := s.buckets(labels)
	for bound, n := range since.buckets(labels) {
		within[bound] -= n
	}
	var bounds []float64
	for bound := range within {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	wanted := part * within[math.Inf(1)]
	below, fewer := 0.0, 0.0
	for _, bound := range bounds {
		if n := within[bound]; n >= wanted && n > fewer {
			if math.IsInf(bound, 1) {
				break // longer than the last bound; the server does not count by how much
			}
			return time.Duration((below + (bound-below)*(wanted-fewer)/(n-fewer)) * float64(time.Second))
		}
		below, fewer = bound, within[bound]
	}
	return time.Duration(math.MaxInt64)
}

// buckets returns how many requests took at most so long, by seconds.
func (s samples) buckets(labels []string) map[float64]float64 {
	found := map[float64]float64{}
	s.each("apiserver_request_duration_seconds_bucket", labels, func(line string, value float64) {
		_, bound, _ := strings.Cut(line, `le="`)
		bound, _, _ = strings.Cut(bound, `"`)
		if seconds, err := strconv.ParseFloat(bound, 64); err == nil {
			found[seconds] += value
		}
	})
	return found
}

// the figures are the API server's own counts.
func TestA47_SamplesAreRead(t *testing.T) {
	const metric = "apiserver_request_duration_seconds"
	taken := func(fast, slow, slowest int) samples {
		labels := `{resource="r",subresource="status",verb="PATCH",le="`
		var lines samples
		for bound, n := range map[string]int{"0.1": fast, "0.2": fast + slow, "+Inf": fast + slow + slowest} {
			lines = append(lines, fmt.Sprintf(`%s_bucket%s%s"} %d`, metric, labels, bound, n),
				fmt.Sprintf(`%s_bucket{resource="r",subresource="",verb="LIST",le="%s"} 1000`, metric, bound))
		}
		return append(lines, "# HELP "+metric+"_bucket{",
			fmt.Sprintf(`%s_count{resource="r",verb="PATCH"} %d`, metric, fast+slow+slowest),
			`apiserver_request_total{code="429",verb="LIST"} 2`, `apiserver_request_total{code="200",verb="LIST"} 7`,
			`apiserver_request_total{code="429",verb="WATCH"} 3`,
			`apiserver_flowcontrol_rejected_requests_total{reason="queue-full"} 4`)
	}
	before := taken(1000, 0, 0)
	for _, row := range []struct {
		fast, slow, slowest int
		part                float64
		want                time.Duration
	}{
		{1100, 0, 0, 0.99, 99 * time.Millisecond}, {1090, 10, 0, 0.95, 150 * time.Millisecond},
		{1100, 0, 0, 0.5, 50 * time.Millisecond},
		{1050, 40, 10, 0.99, math.MaxInt64}, {1000, 0, 0, 0.99, math.MaxInt64},
	} {
		got := taken(row.fast, row.slow, row.slowest).quantile(row.part, before, `subresource="status"`,
			`verb="PATCH"`)
		if got.Round(time.Microsecond) != row.want.Round(time.Microsecond) {
			t.Errorf("%+v: %s", row, got)
		}
	}
	after := taken(1090, 10, 0)
	if n := after.count(before, `verb="PATCH"`); n != 100 {
		t.Errorf("%v requests, want 100", n)
	}
	if n, tooMuch := after.refused(), after.tooMuch(); n != 5 || tooMuch != 4 {
		t.Errorf("%v were answered 429, want 5, %v by priority and fairness, want 4", n, tooMuch)
	}
}
