// Package e2e tests the console in a headless Chromium (U-08). The controller's own handlers serve it for a generated
// cluster.
package e2e

import (
	"context"
	"encoding/json"
	"io"
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
	"github.com/joiner-autoscaler/joiner/internal/history"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// generated is a cluster of 300 nodes and 3,000 pods in which there is something of everything.
func generated() string { return enginetest.Fleet(300, 3000, time.Now().Unix()) }

// stand is a cluster and the console before it.
type stand struct {
	t      testing.TB
	script string
	input  atomic.Pointer[readmodel.Input]
	url    string
	silent atomic.Bool  // the stream says nothing
	away   atomic.Bool  // requests of the model get something else
	asked  atomic.Int64 // how often the model was
	kept   *history.Log
}

func newStand(t testing.TB, script string) *stand {
	t.Helper()
	s := &stand{t: t, script: script, kept: decided()}
	s.show("")
	told := readers.New(readers.Config{Epoch: "e", Now: time.Now, Log: logr.Discard(),
		Input:   func(context.Context) (readmodel.Input, error) { return *s.input.Load(), nil },
		Standby: func(context.Context) string { return "" }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- told.Start(ctx) }()
	mux := http.NewServeMux()
	told.Mount(mux)
	mux.HandleFunc("GET "+history.Path, func(w http.ResponseWriter, r *http.Request) {
		filter, err := history.FromQuery(r.URL.Query())
		if err == nil {
			err = json.NewEncoder(w).Encode(history.Answer{Records: filter.Select(s.kept.Records())})
		}
		if err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(readers.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.silent.Load() && r.URL.Path == readers.PathStream {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		if r.URL.Path == readers.PathView {
			s.asked.Add(1)
			if s.away.Load() {
				_, _ = io.WriteString(w, "<p>Log in, please") // as a proxy may; Chromium reports no error then
				return
			}
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

// decided is a history with a record of each kind.
func decided() *history.Log {
	kept, at := history.New(0, 1), time.Now().Add(-26*time.Hour)
	add := func(r history.Record) {
		at = at.Add(time.Hour)
		kept.Add(r, at)
	}
	add(history.Record{Verb: "launch", Cause: "Pending", Outcome: "done", NodePool: "default",
		NodeClaim: "ip-10-0-1-7", Pods: 27, PodNames: []string{"shop/web-0", "shop/web-1"},
		Types: []string{"m5.large", "m5.xlarge", "m5.2xlarge"}, TypeCount: 14, Before: new(0.0), After: new(0.096)})
	add(history.Record{Verb: "launch", Cause: "Launched", Outcome: "joined", NodePool: "default",
		NodeClaim: "ip-10-0-1-7", Node: "ip-10-0-1-7", Why: "after 41s"})
	add(history.Record{Verb: "wait", Cause: "HardLimitNodes", Outcome: "begun", NodePool: "gpu", Pods: 7,
		PodNames: []string{"ml/train-0"}, Why: "nodes 12 of 12 (hard limit)"})
	add(history.Record{Verb: "remove", Cause: "Underutilized", Outcome: "planned", NodePool: "default",
		NodeClaim: "ip-10-0-0-9", Before: new(0.384), After: new(0.0)})
	add(history.Record{Verb: "remove", Cause: "Underutilized", Outcome: "taken_back", NodePool: "default",
		NodeClaim: "ip-10-0-0-9", Why: "a pod needs the room"})
	add(history.Record{Verb: "pause", Cause: "Paused", Outcome: "begun", Why: "paused until 18:00 (release week)"})
	return kept
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
	t   testing.TB
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
