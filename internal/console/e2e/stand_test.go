// Package e2e tries the console in a headless Chromium (U-08): against a generated cluster, through the handlers that
// the controller serves it with.
package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/app/serve/readers"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// generated is a cluster of 300 nodes and 3,000 pods in which there is something of everything.
func generated() string {
	var b strings.Builder
	b.WriteString("type m5.large cpu=2 mem=8Gi zones=a,b,c od=0.096 spot=0.035\n" +
		"type m5.2xlarge cpu=8 mem=32Gi zones=a,b,c od=0.384 spot=0.14\n" +
		"type p3.2xlarge cpu=8 mem=61Gi zones=a od=3.06\n" +
		"type own.large cpu=4 mem=16Gi zones=a od=1000000\n" +
		"pool default nodes=260 need=type=m5.large|m5.2xlarge\n" +
		"pool gpu hard.nodes=12 need=type=p3.2xlarge\n" +
		"pool batch limit.cpu=100 need=type=m5.2xlarge,team=red blocked=NodeClassNotReady:subnet-selector-matches-nothing\n" +
		"pool own need=type=own.large\n")
	old := time.Now().Unix() - 3*86400
	for i := range 260 {
		kind, zone, capacity, more := "m5.large", string("abc"[i%3]), "on-demand", ""
		if i%3 == 0 {
			kind = "m5.2xlarge"
		}
		if i%4 == 0 {
			capacity = "spot"
		}
		switch i {
		case 17, 18:
			more = " not-ready"
		case 30, 31, 32, 33:
			more = " drifted do-not-disrupt"
		case 40, 41, 42:
			more = " deleting"
		case 50:
			more = " disrupting"
		}
		fmt.Fprintf(&b, "node ip-10-0-%d-%d type=%s zone=%s pool=default capacity=%s created=%d%s\n", i/100, i%100, kind,
			zone,
			capacity, old+100*int64(i), more)
	}
	for i := range 12 {
		fmt.Fprintf(&b, "node gpu-%d type=p3.2xlarge zone=a pool=gpu capacity=on-demand created=%d\n", i, old)
	}
	for i := range 20 {
		fmt.Fprintf(&b, "node own-%d type=own.large zone=a pool=own capacity=on-demand created=%d\n", i, old)
	}
	b.WriteString("node bastion-0..2 cpu=4 mem=16Gi\nclaim default-new-0..2 type=m5.large zone=b pool=default\n" +
		"claim default-asked-0..1 type=m5.large zone=b pool=default unlaunched\n")
	for i := range 2950 {
		fmt.Fprintf(&b, "pod app-%d ns=team-%d cpu=150m mem=256Mi node=%s\n", i, i%9, hostOf(i))
	}
	b.WriteString("pod train-0..6 ns=ml cpu=7 mem=40Gi\npod report-0..29 ns=shop cpu=1 need=team=red\npod huge ns=shop cpu=96\n" +
		"pod web-0..11 ns=shop cpu=500m\n")
	return b.String()
}

func hostOf(i int) string {
	switch n := i % 289; {
	case n < 257:
		if n >= 40 { // those that are being removed have none
			n += 3
		}
		return fmt.Sprintf("ip-10-0-%d-%d", n/100, n%100)
	case n < 269:
		return fmt.Sprintf("gpu-%d", n-257)
	default:
		return fmt.Sprintf("own-%d", n-269)
	}
}

// stand is a cluster and the console before it.
type stand struct {
	t      *testing.T
	script string
	input  atomic.Pointer[readmodel.Input]
	url    string
	silent atomic.Bool // the stream says nothing
}

func newStand(t *testing.T, script string) *stand {
	t.Helper()
	s := &stand{t: t, script: script}
	s.show("")
	told := readers.New(readers.Config{Epoch: "e", Now: time.Now, Log: logr.Discard(),
		Input:   func(context.Context) (readmodel.Input, error) { return *s.input.Load(), nil },
		Standby: func(context.Context) string { return "" }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- told.Start(ctx) }()
	mux := http.NewServeMux()
	told.Mount(mux)
	server := httptest.NewServer(readers.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.silent.Load() && r.URL.Path == readers.PathStream {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		mux.ServeHTTP(w, r)
	})))
	s.url = server.URL
	t.Cleanup(func() {
		cancel()
		<-ended
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// show puts the cluster there, with more in it.
func (s *stand) show(more string) {
	s.t.Helper()
	snapshot, err := enginetest.Parse(s.script + more)
	if err != nil {
		s.t.Fatal(err)
	}
	s.input.Store(&readmodel.Input{Snapshot: snapshot, Plan: engine.Provision(snapshot),
		Terms: engine.Terms{Now: time.Now().Unix()}})
}

// tab is one of a browser of its own, and what it did that it should not.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mutex  sync.Mutex
	faults []string
}

// opened opens a tab of a size: nothing but the loopback may be asked for, and what its console calls an error is one.
func (s *stand) opened(width, height int) *tab {
	s.t.Helper()
	options := []chromedp.ExecAllocatorOption{chromedp.NoFirstRun, chromedp.NoSandbox, chromedp.Headless,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.UserDataDir(s.t.TempDir()), chromedp.WindowSize(width, height)}
	browser, end := chromedp.NewExecAllocator(context.Background(), options...)
	own := &tab{t: s.t, url: s.url}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithListener(own.listen))
	s.t.Cleanup(func() { cancel(); end() })
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), int64(height))); err != nil { // starts it
		s.t.Fatal(err)
	}
	late, cancelLate := context.WithTimeout(ctx, 6*time.Minute)
	s.t.Cleanup(cancelLate)
	own.ctx = late
	call(own, network.Enable, network.EnableParams{})
	call(own, log.Enable, cdp.Empty{})
	s.t.Cleanup(func() {
		own.mutex.Lock()
		defer own.mutex.Unlock()
		for _, fault := range own.faults {
			s.t.Error(fault)
		}
	})
	return own
}

// listen notes what the page does that it should not.
func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.url+"/") && !strings.HasPrefix(e.Request.URL, "data:") &&
			!strings.HasPrefix(e.Request.URL, "about:") {
			b.fault("it asks " + e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.fault("it throws " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			b.fault("it logs an error")
		}
	case *log.EventEntryAdded: // what breaks the policy of the page is told here
		if e.Entry.Level == "error" {
			b.fault(e.Entry.Text)
		}
	}
}

func call[P, R any](b *tab, command cdp.Command[P, R], with P) R {
	b.t.Helper()
	answer, err := chromedp.Call(b.ctx, command, with)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func (b *tab) fault(text string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.faults = append(b.faults, text)
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// at goes to an address and waits for its heading.
func (b *tab) at(address string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.url + address))
	b.until(`!!document.querySelector("main h1")`)
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(15*time.Second)))
	if err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 1500)"))
		b.t.Fatalf("%s is not so: %v\n%s", expression, err, page)
	}
}

// text is what the page says, and ask the value of an expression.
func (b *tab) text() string { return ask[string](b, "document.querySelector('main').innerText") }

func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// do runs statements.
func (b *tab) do(statements string) {
	b.t.Helper()
	if ask[bool](b, "(() => {"+statements+"\n})() === undefined") {
		return
	}
	b.t.Fatal("statements have a value")
}

// picture keeps a picture of the page, where JOINER_CONSOLE_PICTURES names a folder.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("JOINER_CONSOLE_PICTURES")
	if folder == "" {
		return
	}
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
