package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// K-27: Joiner starts on nodes that another program made and nobody needs. It removes none before the grace of the
// first start is over, and says why; then they go. A start on an empty cluster, without grace, is recorded, too.
func TestK27_TheFirstStartOnNodesOfAnotherProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := client.ObjectKey{Namespace: "kube-system", Name: "joiner-takeover"}
	found := func() (data map[string]string) {
		r.eventually(soon, "what the first start found", func(ctx context.Context) (bool, string, error) {
			var object corev1.ConfigMap
			err := r.Client.Get(ctx, at, &object)
			data = object.Data
			return err == nil, fmt.Sprint(err), client.IgnoreNotFound(err)
		})
		return data
	}
	if data := found(); data["nodeclaims"] != "0" || data["until"] != data["started"] {
		t.Errorf("on an empty cluster it found %v", data)
	}
	r.apply(kwokPool("default", amd64Linux,
		"disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1h, budgets: [{nodes: '100%'}]}"))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	if err := r.StopJoiner(); err != nil {
		t.Fatal(err)
	}
	r.run("annotate", "nodeclaims", "--all", "joiner.sh/launched-with-", "karpenter.sh/launched-for-")
	r.run("delete", "configmap", "-n", at.Namespace, at.Name)
	r.run("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"disruption":{"consolidateAfter":"0s"}}}`)
	r.run("delete", "deployment", "web", "--cascade=foreground")
	if err := r.StartJoiner(t.Context(), "--takeover-grace=30s"); err != nil {
		t.Fatal(err)
	}
	data := found()
	until, err := time.Parse(time.RFC3339, data["until"])
	if err != nil || data["nodeclaims"] != "2" {
		t.Fatalf("it found %v (%v), want 2 NodeClaims", data, err)
	}
	r.told("NodePool", "default", "DisruptionPaused",
		"voluntary disruption is paused after the first start, by ConfigMap kube-system/joiner-takeover")
	held := false
	r.eventually(later, "the nodes to go", func(ctx context.Context) (bool, string, error) {
		early := time.Now().Before(until)
		claims, err := r.claims(ctx)
		if err != nil {
			return false, "", err
		}
		for _, claim := range claims {
			if claim.DeletionTimestamp != nil && claim.DeletionTimestamp.Time.Before(until) {
				t.Errorf("NodeClaim %s goes at %s, before %s", claim.Name, claim.DeletionTimestamp, until)
			}
		}
		if held = held || early && len(claims) == 2; time.Now().Before(until) && len(claims) < 2 {
			t.Errorf("%d NodeClaims are left before %s", len(claims), until)
		}
		return len(claims) == 0, fmt.Sprintf("%d NodeClaims", len(claims)), nil
	})
	if !held {
		t.Error("nobody looked while the grace lasted: this test saw nothing")
	}
}
