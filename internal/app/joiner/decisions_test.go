package joiner

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/history"
)

// calls counts what is asked of an API server, and refuses writes while it is told to.
type calls struct {
	reads, writes int
	refuse        bool
}

func (c *calls) server(t *testing.T) client.WithWatch {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "joiner-history-01", nil)
	return controllertest.NewServer(t).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object,
			with ...client.GetOption) error {
			c.reads++
			return to.Get(ctx, key, o, with...)
		},
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, with ...client.CreateOption) error {
			if c.writes++; c.refuse {
				return refused
			}
			return to.Create(ctx, o, with...)
		},
		Update: func(ctx context.Context, to client.WithWatch, o client.Object, with ...client.UpdateOption) error {
			c.writes++
			return to.Update(ctx, o, with...)
		},
	}).Build()
}

func launched(claim string) (apply.Decision, apply.About) {
	return apply.Decision{Verb: apply.Launch, Cause: apply.CausePending, Outcome: apply.Done},
		apply.About{Pool: "default", Claim: claim, Pods: []plan.PodRef{{Namespace: "shop", Name: "web"}},
			After: 70_000}
}

func recordsOf(d *decisions) []history.Record {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.kept.Records()
}

// runs keeps decisions until the function that it returns is called, which stops it in order.
func runs(t *testing.T, d *decisions) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// U-32: nothing is written at rest. Decisions are written at most once a minute, and at once when the leader stops in
// order. The next leader tells the same, and goes on. A decision itself makes no call (U-41).
func TestU32_TheHistorySurvivesTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		server := c.server(t)
		first := newDecisions(DefaultConfig(), server, server, logr.Discard())
		stop := runs(t, first)
		time.Sleep(time.Hour) // of the bubble: it takes none
		if c.writes != 0 || c.reads != history.Slots {
			t.Errorf("at rest: %d reads, %d writes", c.reads, c.writes)
		}
		first.decided(launched("default-0"))
		synctest.Wait()
		if c.writes != 1 {
			t.Errorf("after a decision: %d writes", c.writes)
		}
		before := *c
		for range 100 {
			first.decided(launched("default-1"))
		}
		synctest.Wait()
		if *c != before {
			t.Errorf("within the minute: %+v, before %+v", *c, before)
		}
		time.Sleep(historyEvery)
		synctest.Wait()
		if c.writes != 2 {
			t.Errorf("after a minute: %d writes", c.writes)
		}
		first.decided(launched("default-2"))
		stop()
		if c.writes != 3 {
			t.Errorf("after it stopped: %d writes", c.writes)
		}
		told := recordsOf(first)
		second := newDecisions(DefaultConfig(), server, server, logr.Discard())
		stop = runs(t, second)
		synctest.Wait()
		now := recordsOf(second)
		if len(now) != 103 || now[102].Verb != history.VerbLead || now[0].ID != told[0].ID ||
			now[101].ID != told[101].ID {
			t.Errorf("the next leader has %d records, want 102 and its own", len(now))
		}
		second.decided(launched("default-3"))
		stop()
		var stored corev1.ConfigMap
		key := client.ObjectKey{Namespace: "kube-system", Name: history.ConfigMap(1)}
		if err := server.Get(t.Context(), key, &stored); err != nil {
			t.Fatal(err)
		}
		page, skipped, err := history.Unpack(stored.BinaryData[history.Key])
		if err != nil || skipped > 0 || len(page.Records) != 104 {
			t.Errorf("%d records are stored, %d skipped, %v", len(page.Records), skipped, err)
		}
	})
}

// U-32: without the right to write, the history is in memory. The log says so once, and each answer does. A broken
// page is reported, too.
func TestU32_WithoutTheRightItIsInMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{refuse: true}
		server, lines := c.server(t), 0
		broken := &corev1.ConfigMap{BinaryData: map[string][]byte{history.Key: []byte("?")}}
		broken.Namespace, broken.Name = "kube-system", history.ConfigMap(2)
		c.refuse = false
		if err := server.Create(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		c.refuse = true
		d := newDecisions(DefaultConfig(), server, server,
			funcr.New(func(string, string) { lines++ }, funcr.Options{}))
		stop := runs(t, d)
		d.decided(launched("default-0"))
		time.Sleep(10 * historyEvery)
		stop()
		if lines != 2 { // the broken page, and the right
			t.Errorf("%d lines of the log", lines)
		}
		if !slices.Contains(d.notes, notWritten) || len(recordsOf(d)) != 1 || len(d.notes) != 2 {
			t.Errorf("%+v: %v", recordsOf(d), d.notes)
		}
	})
}

// U-25, U-41: the read API answers what is asked for, newest first; a question that makes no sense is told so.
func TestU25_TheReadAPIHasTheHistory(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	kept := newDecisions(DefaultConfig(), nil, nil, logr.Discard())
	api := newReadAPI(&s.inputs, kept, s.parts.standing, leads(), func(context.Context) string { return "" }, "e",
		logr.Discard())
	kept.decided(launched("default-0"))
	kept.decided(launched("default-1"))
	query := history.Filter{Node: "default-1", Pod: "shop/web"}.Query().Encode()
	code, body := asked(t, api, http.MethodGet, pathHistory+"?"+query)
	var answer history.Answer
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil || code != http.StatusOK ||
		len(answer.Records) != 1 || answer.Records[0].NodeClaim != "default-1" || *answer.Records[0].After != 0.07 {
		t.Errorf("%d %s %v", code, body, err)
	}
	if code, _ := asked(t, api, http.MethodGet, pathHistory+"?since=yesterday"); code != http.StatusBadRequest {
		t.Errorf("yesterday: %d", code)
	}
	if code, _ := asked(t, api, http.MethodPost, pathHistory); code != http.StatusMethodNotAllowed {
		t.Errorf("a write: %d", code)
	}
	api.elected = make(chan struct{})
	if code, _ := asked(t, api, http.MethodGet, pathHistory); code != http.StatusServiceUnavailable {
		t.Errorf("a standby: %d", code)
	}
}

// U-40: the pods and the pool of a decision hold secrets. None of them is in a record, nor in a line of the log.
func TestU40_TheHistoryTellsNoSecret(t *testing.T) {
	t.Parallel()
	const mark = "s3cr3t-m4rk"
	objects := manifests()
	for _, object := range objects {
		object.SetAnnotations(map[string]string{"example.com/note": mark})
		if pod, is := object.(*corev1.Pod); is {
			pod.Spec.Containers = []corev1.Container{{Name: "main", Image: mark + "/app:1", Args: []string{mark},
				Env: []corev1.EnvVar{{Name: "TOKEN", Value: mark}}}}
		}
	}
	s := newStage(t, objects...)
	var lines strings.Builder
	s.kept.log = funcr.New(func(_, args string) { lines.WriteString(args) }, funcr.Options{})
	s.provision()
	s.kept.decided(apply.Decision{Verb: apply.Remove, Cause: "Empty", Outcome: apply.Done},
		apply.About{Claim: s.only().Name})
	data, err := json.Marshal(recordsOf(s.kept))
	if err != nil || !strings.Contains(string(data), "default/web") ||
		!strings.Contains(lines.String(), s.only().Name) {
		t.Fatalf("nothing was decided: %s %v, %s", data, err, lines.String())
	}
	if strings.Contains(string(data)+lines.String(), mark) {
		t.Errorf("the mark is told: %s\n%s", data, lines.String())
	}
}

// U-25, U-32: a claim that is given up is a decision, tied to the one that launched it.
func TestU25_WhatIsGivenUpIsInTheHistory(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	s.provision()
	claim := s.only()
	s.run(Claims, claim.Name)
	s.clock.Advance(DefaultConfig().InitializationTimeout + time.Minute) // its node is never ready
	s.run(Claims, claim.Name)
	records := recordsOf(s.kept)
	last := records[len(records)-1]
	if last.Verb != "remove" || last.Outcome != "done" || last.NodeClaim != claim.Name || last.Why == "" ||
		last.Of != records[0].ID || records[0].Verb != "launch" {
		t.Errorf("%+v", records)
	}
}
