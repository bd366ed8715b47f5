package readers

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// stand is a cluster that tests change, and its readers.
type stand struct {
	t       *testing.T
	readers *Readers
	server  *httptest.Server
	input   atomic.Pointer[readmodel.Input]
	asked   atomic.Int64
	standby atomic.Pointer[string]
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t}
	s.show("")
	s.standby.Store(new(string))
	s.readers = New(Config{Input: func(context.Context) (readmodel.Input, error) {
		s.asked.Add(1)
		return *s.input.Load(), nil
	}, Standby: func(context.Context) string { return *s.standby.Load() }, Epoch: "e", Now: time.Now,
		Log: logr.Discard()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.readers.Start(ctx) }()
	mux := http.NewServeMux()
	s.readers.Mount(mux)
	s.server = httptest.NewServer(Guard(mux))
	t.Cleanup(func() {
		cancel() // streams end with it
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.server.Close()
	})
	return s
}

// show puts a cluster there, with more in it.
func (s *stand) show(more string) {
	s.t.Helper()
	snapshot, err := enginetest.Parse("type m cpu=4 zones=a od=0.2\npool p\nnode n1..9 type=m zone=a pool=p\n" +
		"pod big-0..2 cpu=64\n" + more)
	if err != nil {
		s.t.Fatal(err)
	}
	s.input.Store(&readmodel.Input{Snapshot: snapshot, Plan: engine.Provision(snapshot)})
}

func (s *stand) get(method, path string, headers ...string) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func (s *stand) body(path string) (int, string) {
	s.t.Helper()
	answer := s.get(http.MethodGet, path)
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

// told is an event.
type told struct {
	event, id string
	data      map[string]any
}

// stream reads events, those that tell that the stream lives left out.
func stream(t *testing.T, from io.Reader) func() told {
	t.Helper()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	return func() told {
		t.Helper()
		var e told
		for lines.Scan() {
			switch kind, value, _ := strings.Cut(lines.Text(), ": "); kind {
			case "event":
				e.event = value
			case "id":
				e.id = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.data); err != nil {
					t.Fatal(err)
				}
			case "":
				if e.event != "beat" {
					return e
				}
				e = told{}
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return e
	}
}

// TestU41_AStreamTellsTheWholeAndThenWhatChanges, each with the version of the snapshot. A reader that comes back with
// its version gets what it missed, or the whole if that version is not known.
func TestU41_AStreamTellsTheWholeAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	next := stream(t, s.get(http.MethodGet, PathStream).Body)
	first := next()
	if first.event != "snapshot" || first.id != first.data["id"] || len(first.data["nodes"].([]any)) != 9 ||
		first.data["version"] != 1.0 || first.data["apiVersion"] != readmodel.APIVersion {
		t.Fatalf("%+v", first)
	}
	s.show("node new type=m zone=a pool=p\n")
	second := next()
	for second.data["nodes"] == nil { // which nodes stay may be told in between
		second = next()
	}
	if second.event != "delta" || !strings.Contains(fmt.Sprint(second.data["nodes"]), "new") {
		t.Errorf("%+v", second)
	}
	missed := stream(t, s.get(http.MethodGet, PathStream+"?since="+first.id).Body)()
	if missed.event != "delta" || missed.data["from"] != first.id {
		t.Errorf("%+v", missed)
	}
	for _, other := range []string{"x.1", "e.99", "e.", "1", "e.-1"} {
		if whole := stream(t, s.get(http.MethodGet, PathStream+"?since="+other).Body)(); whole.event != "snapshot" {
			t.Errorf("%s: %+v", other, whole)
		}
	}
	if _, text := s.body(PathView + "?since=" + first.id); !strings.Contains(text, `"deltas":[{"from":"`+first.id) {
		t.Error(text)
	}
	if code, text := s.body(PathView); code != http.StatusOK || !strings.HasPrefix(text,
		`{"apiVersion":"view.joiner.sh/v1"`) {
		t.Error(text)
	}
}

// TestU41_APackedStreamIsReadAsItComes: frames that were packed once are one stream for each reader.
func TestU41_APackedStreamIsReadAsItComes(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	answer := s.get(http.MethodGet, PathStream, "Accept-Encoding", "gzip")
	packed, err := gzip.NewReader(answer.Body)
	if err != nil || answer.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(err, answer.Header)
	}
	next := stream(t, packed)
	if first := next(); first.event != "snapshot" {
		t.Fatalf("%+v", first)
	}
	s.show("node new type=m zone=a pool=p\n")
	if second := next(); second.event != "delta" {
		t.Errorf("%+v", second)
	}
}

// TestU41_TheModelIsMadeOnceForAll and not at all without a reader.
func TestU41_TheModelIsMadeOnceForAll(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	s := newStand(t)
	ctx, cancel := context.WithCancel(t.Context())
	var nexts []func() told
	for range 10 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+PathStream, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		nexts = append(nexts, stream(t, answer.Body))
	}
	for _, next := range nexts {
		next()
	}
	for _, node := range []string{"a", "b"} {
		s.show("node " + node + " type=m zone=a pool=p\n")
		for _, next := range nexts {
			for e := next(); !strings.Contains(fmt.Sprint(e.data["nodes"]), "id:"+node); e = next() {
				if e.event != "delta" {
					t.Fatalf("%+v", e)
				}
			}
		}
	}
	if most := int64(time.Since(begun)/every) + 2; s.asked.Load() > most {
		t.Errorf("10 readers cost %d models, one a second is %d", s.asked.Load(), most)
	}
	cancel()
	asked := int64(-1)
	for deadline := time.After(10 * every); asked != s.asked.Load(); {
		asked = s.asked.Load()
		select {
		case <-time.After(2 * every): // longer than readers are told nothing new
		case <-deadline:
			t.Fatal("models are made without a reader")
		}
	}
}

// TestU41_WhoDoesNotReadIsDropped at a bound; others are told on.
func TestU41_WhoDoesNotReadIsDropped(t *testing.T) {
	t.Parallel()
	var cuts atomic.Int64
	slow, quick := newReader(false, func() { cuts.Add(1) }), newReader(false,
		func() { t.Error("a reader that reads is cut") })
	large := &frame{plain: make([]byte, mostBacklog+1)}
	slow.send(large, true) // a snapshot may be larger
	part := &frame{plain: make([]byte, mostBacklog/8)}
	for range 12 {
		slow.send(part, false)
		quick.send(part, false)
		data, counts, _ := quick.next()
		if !counts {
			t.Fatal("a frame is not counted")
		}
		quick.written(len(data))
	}
	if _, _, dropped := slow.next(); !dropped || cuts.Load() == 0 || slow.queue != nil {
		t.Errorf("dropped %t, cut %d times, %d frames are kept", dropped, cuts.Load(), len(slow.queue))
	}
}

// TestU41_NoMoreThanSoManyReaders: the next one is told so.
func TestU41_NoMoreThanSoManyReaders(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for range mostReaders {
		stream(t, s.get(http.MethodGet, PathStream).Body)()
	}
	refused := s.get(http.MethodGet, PathStream)
	text, _ := io.ReadAll(refused.Body)
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(text), "32 readers") {
		t.Errorf("%d %s", refused.StatusCode, text)
	}
	if code, _ := s.body(PathView); code != http.StatusOK {
		t.Errorf("a single question: %d", code)
	}
}

// TestU41_OnlyReadsOfTheLoopbackAreAnswered, with the headers that keep the page to itself.
func TestU41_OnlyReadsOfTheLoopbackAreAnswered(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		for _, path := range []string{"/", PathView, PathStream, "/nothing"} {
			if answer := s.get(method, path); answer.StatusCode != http.StatusMethodNotAllowed ||
				answer.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d", method, path, answer.StatusCode)
			}
		}
	}
	for host, want := range map[string]int{"127.0.0.1:9": 200, "localhost": 200, "[::1]:9": 200, "evil.example": 403,
		"127.0.0.1.evil.example:80": 403, "10.0.0.1": 403} {
		if answer := s.get(http.MethodGet, PathView, "Host", host); answer.StatusCode != want {
			t.Errorf("Host %s: %d, want %d", host, answer.StatusCode, want)
		}
	}
	for _, path := range []string{PathView, PathStream, "/"} {
		answer := s.get(http.MethodHead, path)
		h := answer.Header
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(h.Get("Content-Security-Policy"),
			"default-src 'none';") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "" ||
			h.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v", path, answer.StatusCode, h)
		}
	}
}

// TestU41_DetailsAreFoundByAddress, and bad questions are told what is allowed.
func TestU41_DetailsAreFoundByAddress(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for path, want := range map[string]string{
		"/pods/default/big-1": `"code":"PodTooLarge"`, "/nodes/n3": `"id":"n3"`, "/pools/p": `"name":"p"`,
		"/pods?cause=PodTooLarge": `"total":3`, "/pods?q=big-2": `"total":1`, "/nodes/n3?from=5": `"pods":[]`,
	} {
		if code, text := s.body(PathView + path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", path, code, text, want)
		}
	}
	for path, want := range map[string]int{"/pods/default/no": 404, "/nodes/no": 404, "/pools/no": 404,
		"/pods?from=x":  400,
		"/pods?from=-1": 400, "/nodes/n3?from=x": 400, "/other": 404} {
		if code, text := s.body(PathView + path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, text, want)
		}
	}
	why := "this pod does not lead: the leader is joiner-b"
	s.standby.Store(&why)
	for _, path := range []string{PathView, PathStream, PathView + "/nodes/n3", PathView + "/pods"} {
		if code, text := s.body(path); code != http.StatusServiceUnavailable || text != why+"\n" {
			t.Errorf("%s of a standby: %d %s", path, code, text)
		}
	}
}

// TestU41_WhatCannotBeMadeIsSaid, and tried again.
func TestU41_WhatCannotBeMadeIsSaid(t *testing.T) {
	t.Parallel()
	r := New(Config{Input: func(context.Context) (readmodel.Input, error) {
		return readmodel.Input{}, errors.New("caches are being filled")
	}, Standby: func(context.Context) string { return "" }, Now: time.Now, Log: logr.Discard(),
		Stays: func(*cluster.Snapshot, engine.Terms) map[string]engine.Standing { return nil }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	for range 2 {
		w := httptest.NewRecorder()
		r.view(w, httptest.NewRequestWithContext(ctx, http.MethodGet, PathView, nil))
		if w.Code != http.StatusServiceUnavailable || w.Body.String() != "caches are being filled\n" ||
			w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	r.view(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, PathView, nil))
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != "this process ends\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
