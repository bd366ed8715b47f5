package joiner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/api/crd"
)

// V-20: at its next look, the leader has v1beta1 served again by a CRD that was applied anew, and by one that was
// installed later. A replica that is set to off does not change what the leader keeps. Once it leads itself, it takes
// v1beta1 away.
func TestTheLeaderKeepsTheVersions(t *testing.T) {
	t.Parallel()
	c := installed(t, classes, interceptor.Funcs{})
	hook := crd.Webhook{URL: "https://a/convert", CABundle: []byte("first")}
	on := &definitionKeeper{log: logr.Discard(), write: func(ctx context.Context) ([]string, error) {
		return serveV1beta1(ctx, c, hook)
	}}
	now := time.Unix(0, 0)
	look := func(k *definitionKeeper, want string) {
		t.Helper()
		now = now.Add(time.Hour)
		if k.step(t.Context(), now) {
			t.Error("it has ended")
		}
		if got := versions(t, c, pools); got != want {
			t.Errorf("pools have %s, want %s", got, want)
		}
	}
	look(on, "v1,v1beta1 Webhook")
	manifests, err := definitions(crd.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := definition(t.Context(), c, pools)
	if err != nil {
		t.Fatal(err)
	}
	if err := take(plain, manifests[pools]); err != nil {
		t.Fatal(err)
	}
	setAnnotation(plain, "") // as kubectl replace does
	if err := c.Update(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), manifests[classes]); err != nil {
		t.Fatal(err)
	}
	look(on, "v1,v1beta1 Webhook")
	if got := versions(t, c, classes); got != "v1,v1beta1 Webhook" {
		t.Errorf("classes have %s", got)
	}
	off, err := endConversion(t.Context(), c, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	look(on, "v1,v1beta1 Webhook")
	look(off.definitions, "v1 None")
	look(on, "v1,v1beta1 Webhook")
}

// V-20: against a program that undoes every change the pauses grow, up to a bound. After a quiet time, a change is
// answered at once again.
func TestAnEndlessFightGetsRare(t *testing.T) {
	t.Parallel()
	disturbed, written := true, 0
	k := &definitionKeeper{log: logr.Discard(), write: func(context.Context) (changed []string, _ error) {
		if disturbed {
			changed, written = []string{pools}, written+1
		}
		return changed, nil
	}}
	now := time.Unix(0, 0)
	run := func(d time.Duration) (writes int) {
		before := written
		for end := now.Add(d); now.Before(end); now = now.Add(definitionsEvery) {
			k.step(t.Context(), now)
		}
		return written - before
	}
	if first := run(time.Hour); first < 8 || first > 12 {
		t.Errorf("%d writes in the first hour, want about ten", first)
	}
	if later := run(time.Hour); later < 5 || later > 6 {
		t.Errorf("%d writes in an hour of a long fight, want one every ten minutes", later)
	}
	disturbed = false
	run(time.Hour)
	disturbed = true
	if again := run(2 * definitionsEvery); again != 2 {
		t.Errorf("after a quiet hour %d writes in two looks", again)
	}
}

// V-20: a failure is logged once; without rights a replica that is set to off looks no more.
func TestFailuresOfTheDefinitionKeeper(t *testing.T) {
	t.Parallel()
	var log lines
	failure := errors.New("no")
	k := &definitionKeeper{optional: true, log: funcr.New(log.add, funcr.Options{}),
		write: func(context.Context) ([]string, error) { return nil, failure }}
	var ended []bool
	for range 3 {
		ended = append(ended, k.step(t.Context(), time.Now()))
	}
	failure = apierrors.NewForbidden(schema.GroupResource{}, pools, nil)
	ended = append(ended, k.step(t.Context(), time.Now()))
	if !slices.Equal(ended, []bool{false, false, false, true}) || len(log.said) != 1 {
		t.Errorf("ended %v, log %q", ended, log.said)
	}
}
