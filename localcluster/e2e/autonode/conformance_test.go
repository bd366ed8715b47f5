package autonode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// conformancePatience is how long it may take to find what differs. The operator looks ten seconds after a change
	// and looks again a minute later at what it could not judge.
	conformancePatience = 2 * time.Minute
	// settledEnv makes a test wait for the minute that a node has until it is judged.
	settledEnv = "JOINER_NODE_SETTLES"
)

// conforming waits for the Conforming condition of the policy, and returns how long that took.
func (w *world) conforming(status, reason string, parts ...string) time.Duration {
	w.t.Helper()
	began := time.Now()
	w.eventuallyIn(conformancePatience, fmt.Sprintf("Conforming=%s %s %q", status, reason, parts),
		func() (bool, string) {
			said := condition(w.get(policyKind, "default"), "Conforming")
			message := fmt.Sprint(said["message"])
			done := said["status"] == status && said["reason"] == reason
			for _, part := range parts {
				done = done && strings.Contains(message, part)
			}
			return done, show(said)
		})
	if status == "False" {
		w.saw(attack.Told, "the operator", "Conforming=False "+reason+": "+strings.Join(parts, ", "), began)
	}
	return time.Since(began).Round(time.Second)
}

// on a real API server, the operator finds claims and nodes that no pool made, with cause and
// party, and the policy stays Ready.
func TestA19_WhatNoPoolMadeIsFound(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.pool("conforms", wants(in(instanceType, "a")))
	w.merged("conforms", in(instanceType, "a", "b"), in(instanceType, "a"))
	w.conforming("True", "Conforms")

	rogue := claimOf("rogue", "conforms", "another") // it poses as the pool's
	if err := w.cadmin.Create(w.ctx, rogue); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.remove(w.cadmin, rogue) })
	t.Logf("a claim by hand was found after %s", w.conforming("False", "NotConforming", "HandMade (Tenant)",
		"NodeClaim rogue"))
	w.policySays("True", "")
	w.told("NodeClaim", "rogue", "NotConforming")
	w.remove(w.cadmin, rogue)
	t.Logf("that it went was noticed after %s", w.conforming("True", "Conforms"))

	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "poses", Labels: map[string]string{"karpenter.sh/nodepool": "conforms"}},
	}
	if err := w.cadmin.Create(w.ctx, node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.cadmin.Delete(w.ctx, node); err != nil {
			t.Error(err)
		}
	})
	// A node may appear before its claim is seen, so it has a minute.
	w.conforming("Unknown", "NotChecked", "Node poses")
	if !shared.Asked(t, settledEnv, "wait until a node by hand is judged") {
		return
	}
	t.Logf("a node by hand was found after %s more", w.conforming("False", "NotConforming", "HandMade (Tenant)",
		"Node poses"))
}

// a class altered on its way counts as the tenant's doing, and so do its pools. The end of the
// alteration is noticed.
func TestA21_AnAlteredClassIsTheTenants(t *testing.T) {
	w := begin(t)
	w.policy(root("{volumeSize: 90Gi}"))
	w.class("altered", object{"monitoring": "Basic"})
	w.classSays("altered", "PolicyApplied", "True", "")
	end := w.mutate(mutation{
		name: "profile", group: "karpenter.k8s.aws", resource: "ec2nodeclasses", object: "altered",
		expression: classMutations()["spec.instanceProfile"],
	})
	// Once the mutation is in force, every write goes through it. So the test writes until one was altered.
	next := map[string]string{"Basic": "Detailed", "Detailed": "Basic"}
	monitoring := "Basic"
	w.eventually("a write to be altered", func() (bool, string) {
		monitoring = next[monitoring]
		w.mustPatch(w.cadmin, w.get(classWrapper, "altered"), object{"spec": object{"monitoring": monitoring}})
		said := condition(w.get(classWrapper, "altered"), "PolicyApplied")
		return said["reason"] == "AlteredOnWrite", show(said)
	})
	t.Logf("found after %s", w.conforming("False", "NotConforming", "AlteredOnWrite (Tenant)", "EC2NodeClass altered"))
	end()
	t.Logf("its end was noticed after %s", w.conforming("True", "Conforms"))
}
