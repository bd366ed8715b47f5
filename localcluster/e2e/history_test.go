package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/history"
)

// stored returns the decisions in ConfigMaps.
func (r *testRig) stored(ctx context.Context) ([]history.Record, error) {
	var list corev1.ConfigMapList
	if err := r.Client.List(ctx, &list, client.InNamespace("kube-system")); err != nil {
		return nil, err
	}
	var records []history.Record
	for _, found := range list.Items {
		data, is := found.BinaryData[history.Key]
		if !is {
			continue
		}
		page, skipped, err := history.Unpack(data)
		if err != nil || skipped > 0 {
			return nil, fmt.Errorf("%s: %d skipped, %w", found.Name, skipped, err)
		}
		records = append(records, page.Records...)
	}
	return records, nil
}

// U-32: after kill -9 the next leader tells what the one before has stored, and goes on. So does the next one after an
// orderly stop, and then nothing is lost.
func TestU32_TheNextLeaderTellsTheSameHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quiet))
	r.apply(deployment("web", 2, "{cpu: 1}", ""))
	r.allRunning(2, later)
	var before []history.Record
	r.eventually(soon, "a decision that is stored", func(ctx context.Context) (bool, string, error) {
		var err error
		before, err = r.stored(ctx)
		return len(before) > 0, "none", err
	})
	r.kill("with a history")
	r.apply(deployment("other", 3, "{cpu: 2}", ""))
	r.eventually(later, "5 running pods", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx)
		running := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == 5, fmt.Sprintf("%d run", running), err
	})
	if err := r.StopJoiner(); err != nil { // what is not stored yet is stored now
		t.Fatal(err)
	}
	after, err := r.stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(after) < len(before)+2 {
		t.Fatalf("%d decisions are stored, %d were before the kill", len(after), len(before))
	}
	for i := range before {
		if after[i].ID != before[i].ID || after[i].NodeClaim != before[i].NodeClaim {
			t.Errorf("decision %d was %+v, and is %+v", i, before[i], after[i])
		}
	}
	rest := after[len(before):]
	if rest[0].Verb != history.VerbLead {
		t.Errorf("the next leader began with %+v", rest[0])
	}
	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims {
		known := func(decided history.Record) bool {
			return decided.NodeClaim == claim.Name && decided.Outcome == "done"
		}
		if !slices.ContainsFunc(after, known) {
			t.Errorf("NodeClaim %s is in no decision", claim.Name)
		}
	}
}
