package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// veryLarge is a cluster of 5,000 nodes and 100,000 pods.
func veryLarge() string { return enginetest.Fleet(5000, 100000, time.Now().Unix()) }

// churn moves 50 pods.
func (s *stand) churn(step int) {
	in := *s.input.Load()
	in.Snapshot = enginetest.Churn(in.Snapshot, step, 50)
	s.input.Store(&in)
}

// TestU08_AVeryLargeCluster: 5,000 nodes and 100,000 pods are shown with a bounded number of elements, 1440 and 360 px
// wide. Changes are shown there, too.
func TestU08_AVeryLargeCluster(t *testing.T) {
	s := newStand(t, veryLarge())
	b := s.opened(1440, 900)
	large := [][3]string{{"overview", "/", "5,000"}, {"nodes", "/nodes", "5,000"},
		{"table", "/nodes?as=table", "5,000"},
		{"pool", "/nodes?pool=team-07&cause=DoNotDisruptNode", "of 5,000"}, {"one", "/pools/team-07", "team-07"},
		{"waiting", "/pods", "PoolNotReady"}}
	for _, size := range []int64{1440, 360} {
		b.run(chromedp.EmulateViewport(size, 900))
		for _, dark := range []bool{false, true} {
			b.dark(dark)
			for _, p := range large {
				b.at(p[1])
				b.shows(p[2])
				name := fmt.Sprintf("large-%s-%d-%t", p[0], size, dark)
				b.picture(name)
				if n := ask[int](b, "document.querySelectorAll('main *').length"); n > 6000 {
					t.Errorf("%s has %d elements", name, n)
				}
				if wide := ask[int](b, "document.documentElement.scrollWidth"); wide > int(size) {
					t.Errorf("%s is %d wide", name, wide)
				}
			}
		}
	}
	b.at("/")
	b.shows("5,000")
	s.show("pod lost-0..4 ns=far cpu=96\n")
	b.shows("55 wait")
}

// BenchmarkU08_ThePage measures the console in a browser: the time from the navigation to the first view; processor
// time of the page for that, and for a second in which 50 pods move; the longest task meanwhile; and the heap after
// half a minute. Time depends on what else the machine does; processor time does not.
func BenchmarkU08_ThePage(b *testing.B) {
	for _, size := range [][2]int{{300, 3000}, {5000, 100000}} {
		for _, at := range []string{"/", "/nodes?as=table"} {
			b.Run(fmt.Sprintf("nodes=%d%s", size[0], at), func(b *testing.B) {
				s := newStand(b, enginetest.Fleet(size[0], size[1], time.Now().Unix()))
				for b.Loop() {
					measure(b, s, at)
				}
			})
		}
	}
}

// watches notes the first view and the longest task.
const watches = `window.longest = 0;
new PerformanceObserver((l) => { for (const e of l.getEntries()) longest = Math.max(longest, e.duration); }).observe({type: "longtask", buffered: true});
new MutationObserver((_, own) => { if (document.querySelector("main h1")) { window.firstView = performance.now(); own.disconnect(); } })
  .observe(document, {childList: true, subtree: true});`

func measure(b *testing.B, s *stand, at string) {
	b.Helper()
	tab := s.opened(1440, 900)
	call(tab, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
	call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watches})
	tab.at(at)
	tab.until("window.firstView > 0 && document.querySelectorAll('.box, tbody tr').length > 20")
	first := tab.processor()
	b.ReportMetric(ask[float64](tab, "window.firstView"), "ms-first-view")
	b.ReportMetric(1000*first, "cpu-ms-first-view")
	b.ReportMetric(ask[float64](tab, "window.longest"), "ms-longest-at-first")
	tab.do("window.longest = 0")
	const seconds = 30
	for step := range seconds {
		s.churn(step)
		ask[bool](tab, "new Promise((d) => setTimeout(() => d(true), 1000))")
	}
	b.ReportMetric(1000*(tab.processor()-first)/seconds, "cpu-ms-a-second")
	b.ReportMetric(ask[float64](tab, "window.longest"), "ms-longest-later")
	b.ReportMetric(call(tab, runtime.GetHeapUsage, cdp.Empty{}).UsedSize/(1<<20), "MiB-heap")
	b.ReportMetric(ask[float64](tab, "document.querySelectorAll('main *').length"), "elements")
}

// processor is what the page's main thread has used so far, in seconds.
func (b *tab) processor() float64 {
	b.t.Helper()
	for _, m := range call(b, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	b.t.Fatal("the browser has no TaskDuration")
	return 0
}
