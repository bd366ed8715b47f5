package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/joiner-autoscaler/joiner/internal/history"
)

// pages are all addresses that the console has something at, with what it has to say there.
func pages() [][3]string {
	return [][3]string{{"overview", "/", "Needs attention"}, {"nodes", "/nodes", "265 nodes"},
		{"table", "/nodes?as=table", "NotInitialized"}, {"node", "/nodes/ip-10-0-0-30", "DoNotDisruptNode"},
		{"waiting", "/pods", "HardLimitNodes"}, {"cause", "/pods?cause=HardLimitNodes&pool=gpu", "ml/train-6"},
		{"pod", "/pods/shop/huge", "PodTooLarge"}, {"pools", "/pools", "12 of 12"},
		{"pool", "/pools/gpu", "LimitReached"}, {"history", "/history", "release week"},
		{"about", "/about", "Snapshot of the engine"}, {"gone", "/nodes/nobody", "knows of no node"}}
}

// shows waits until the page says something.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector('main').textContent.includes(%q)", text))
}

func (b *tab) dark(on bool) {
	b.t.Helper()
	value := map[bool]string{true: "dark", false: "light"}[on]
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// axe are the findings of axe-core, one on a line.
func (b *tab) axe(rules string) string {
	b.t.Helper()
	b.do(rules)
	return ask[string](b,
		`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})`+
			`.then((r) => r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 3)`+
			`.map((n) => n.html + " " + n.failureSummary).join(" | ")).join("\n"))`)
}

// TestU38_EveryPageIsAccessible in both themes, wide and narrow, without scrolling sideways: axe finds nothing.
func TestU38_EveryPageIsAccessible(t *testing.T) {
	rules, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v: make console-e2e fetches it", err)
	}
	for _, size := range []int{1440, 360} {
		for _, dark := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d-%t", size, dark), func(t *testing.T) {
				b := newStand(t, generated()).opened(size, 900)
				b.dark(dark)
				for _, page := range pages() {
					if page[0] != "gone" { // the browser itself calls that an error
						b.accessible(page, fmt.Sprintf("%s-%d-%t", page[0], size, dark), string(rules), size)
					}
				}
			})
		}
	}
}

// accessible opens a page, keeps a picture, and holds it to axe and to its width.
func (b *tab) accessible(page [3]string, name, rules string, width int) {
	b.t.Helper()
	b.at(page[1])
	b.shows(page[2])
	b.picture(name)
	if found := b.axe(rules); found != "" {
		b.t.Errorf("%s: %s", name, found)
	}
	if wide := ask[int](b, "document.documentElement.scrollWidth"); wide > width {
		b.t.Errorf("%s is %d wide", name, wide)
	}
}

// TestU08_EveryPageShowsItsCauses, after a reload too, and by going back.
func TestU08_EveryPageShowsItsCauses(t *testing.T) {
	s := newStand(t, generated())
	b := s.opened(1440, 900)
	for _, page := range pages() {
		b.at(page[1])
		b.shows(page[2])
	}
	b.mutex.Lock()
	b.faults = nil // what is not there is answered with 404, which the browser logs
	b.mutex.Unlock()
	b.at("/nodes?group=zone&fill=memory&state=draining")
	b.shows("3 of 300")
	b.run(chromedp.Reload())
	b.shows("3 of 300")
	b.run(chromedp.Click(chromedp.CSS(".box")))
	b.shows("is being removed")
	if at := ask[string](b, "location.pathname + location.search"); !strings.HasPrefix(at, "/nodes/ip-") ||
		!strings.Contains(at, "group=zone") {
		t.Error(at)
	}
	b.run(chromedp.NavigateBack())
	b.until(`location.pathname === "/nodes"`)
	b.shows("3 of 300")
}

// TestU08_WhatChangesIsShown without a reload: a node that comes, and pods that wait and then do not. Frozen, nothing
// moves.
func TestU08_WhatChangesIsShown(t *testing.T) {
	s := newStand(t, generated())
	b := s.opened(1440, 900)
	b.at("/")
	b.until(`document.querySelectorAll(".box").length === 300`)
	b.do("window.first = document.querySelector('.box[aria-label^=gpu-3]')")
	s.show("node fresh type=p3.2xlarge zone=a pool=gpu capacity=on-demand\npod more-0..4 ns=ml cpu=7500m\n")
	b.until(`document.querySelectorAll(".box").length === 301 && !!document.querySelector('.box[aria-label^=fresh]')`)
	b.shows("wait")
	if !ask[bool](b, "window.first === document.querySelector('.box[aria-label^=gpu-3]')") {
		t.Error("a box that says the same is drawn anew")
	}
	s.show("")
	b.until(`document.querySelectorAll(".box").length === 300`)
	b.run(chromedp.Click(chromedp.CSS("button[title^='Stop showing']")))
	s.show("node later type=p3.2xlarge zone=a pool=gpu capacity=on-demand\n")
	b.until(`document.querySelector(".live").textContent.includes("frozen")`)
	if n := ask[int](b,
		"new Promise((d) => setTimeout(() => d(document.querySelectorAll('.box').length), 2500))"); n != 300 {
		t.Errorf("%d boxes while it is frozen", n)
	}
	b.run(chromedp.Click(chromedp.CSS("button[title^='Stop showing']")))
	b.until(`document.querySelectorAll(".box").length === 301`)
}

// TestU08_TheHistoryIsShown: on a page of its own, for one node if that is asked for. The overview shows the last
// records. New decisions appear.
func TestU08_TheHistoryIsShown(t *testing.T) {
	s := newStand(t, generated())
	b := s.opened(1440, 900)
	b.at("/history?node=ip-10-0-1-7")
	b.shows("after 41s")
	if text := b.text(); !strings.Contains(text, "shop/web-0 and 26 more") || !strings.Contains(text, "+$0.096") ||
		strings.Contains(text, "release week") {
		t.Error(text)
	}
	b.run(chromedp.Click(chromedp.CSS(".tag button")))
	b.shows("release week")
	b.at("/")
	b.shows("taken back")
	s.kept.Add(history.Record{Verb: "remove", Cause: "Empty", Outcome: "done", NodePool: "own", NodeClaim: "own-3"},
		time.Now())
	s.show("node fresh type=p3.2xlarge zone=a pool=gpu capacity=on-demand\n")
	b.shows("remove Empty")
}

// TestU38_TheKeyboardIsEnough: pages by their letters, boxes by arrows, the filter, and back.
func TestU38_TheKeyboardIsEnough(t *testing.T) {
	s := newStand(t, generated())
	b := s.opened(1440, 900)
	b.at("/")
	for _, page := range [][2]string{{"w", "/pods"}, {"p", "/pools"}, {"h", "/history"}, {"n", "/nodes"}} {
		b.run(chromedp.KeyEvent("g"), chromedp.KeyEvent(page[0]))
		b.until(fmt.Sprintf("location.pathname === %q && document.activeElement.tagName === 'H1'", page[1]))
	}
	// As a keyboard does it: a key that is taken writes nothing.
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: "/", Text: "/"})
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyUp", Key: "/"})
	b.until("document.activeElement.id === 'filter'")
	b.run(chromedp.KeyEvent("gpu-"))
	b.until("location.search.includes('q=gpu-') && document.querySelectorAll('.box').length === 12")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.do("document.querySelector('.box').focus()")
	b.run(chromedp.KeyEvent(kb.ArrowRight))
	b.until("document.activeElement.getAttribute('aria-label')?.startsWith('gpu-1,')")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until("location.pathname === '/nodes/gpu-1' && location.search.includes('q=gpu-')")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until("location.pathname === '/nodes'")
	b.run(chromedp.KeyEvent("?"))
	b.until("document.querySelector('dialog').open")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until("!document.querySelector('dialog').open")
}

// TestU08_NamesAreText, whatever they look like.
func TestU08_NamesAreText(t *testing.T) {
	const evil = `<img/src=x/onerror=alert(1)>`
	s := newStand(t, "type m cpu=4 zones=a od=0.2\npool "+evil+" blocked="+evil+"\nnode "+evil+"1 type=m zone=a pool="+
		evil+"\npod "+evil+"2 ns="+evil+" cpu=64\n")
	b := s.opened(1440, 900)
	for _, page := range []string{"/", "/nodes", "/nodes?as=table", "/pods", "/pools", "/pods?q=%3Cimg",
		"/nodes?q=%3Cimg"} {
		b.at(page)
		b.shows("<img/src=x")
		if n := ask[int](b, "document.querySelectorAll('main img, main script').length"); n != 0 {
			t.Errorf("%s has %d elements that a name made", page, n)
		}
	}
	b.run(chromedp.Click(chromedp.CSS("tbody a, .box")))
	b.until(`document.querySelector("main h1").textContent.startsWith("<img")`)
}

// TestU08_AStreamThatIsHeldBackIsAskedForInstead.
func TestU08_AStreamThatIsHeldBackIsAskedForInstead(t *testing.T) {
	s := newStand(t, generated())
	s.silent.Store(true)
	b := s.opened(1440, 900)
	b.at("/")
	b.until(`document.querySelectorAll(".box").length === 300`)
	s.show("node fresh type=p3.2xlarge zone=a pool=gpu capacity=on-demand\n")
	b.until(`document.querySelectorAll(".box").length === 301`)
}

// TestU08_WithoutAnswersItAsksSeldom: where the stream is held back too.
func TestU08_WithoutAnswersItAsksSeldom(t *testing.T) {
	s := newStand(t, generated())
	s.silent.Store(true)
	b := s.opened(1440, 900)
	b.at("/")
	b.until(`document.querySelectorAll(".box").length === 300`)
	s.away.Store(true)
	before := s.asked.Load()
	b.do("window.since = performance.now()")
	b.until("performance.now() - window.since > 8000")
	if n := s.asked.Load() - before; n == 0 || n > 5 {
		t.Errorf("the page asked %d times in eight seconds, want 1 to 5", n)
	}
	s.away.Store(false)
	s.show("node fresh type=p3.2xlarge zone=a pool=gpu capacity=on-demand\n")
	b.until(`document.querySelectorAll(".box").length === 301`)
}

// TestU38_WhatIsNewTakesNoFocus: neither from a link above, nor from a box, nor from what is being typed.
func TestU38_WhatIsNewTakesNoFocus(t *testing.T) {
	s := newStand(t, generated())
	b := s.opened(1440, 900)
	b.at("/nodes?as=table")
	for i, what := range []string{"nav a", "th button", "tbody a"} {
		b.do(fmt.Sprintf("window.had = document.querySelector(%q); window.had.focus()", what))
		s.show(fmt.Sprintf("node z-%d type=p3.2xlarge zone=a pool=gpu capacity=on-demand\n", i))
		b.until("document.querySelector('h1').textContent.includes('301')")
		if !ask[bool](b, "document.activeElement === window.had") {
			t.Errorf("%s has lost the focus", what)
		}
		s.show("")
		b.until("document.querySelector('h1').textContent.includes('300')")
	}
}
