package autonode

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimOf returns a NodeClaim that claims to belong to a NodePool.
func claimOf(name, pool, uid string) *unstructured.Unstructured {
	claim := newObject(nodeClaimKind, "", name,
		parse(`{nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
		requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [a]}]}`))
	claim.SetLabels(map[string]string{"karpenter.sh/nodepool": pool})
	claim.Object["metadata"].(object)["ownerReferences"] =
		list(object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": pool, "uid": uid})
	return claim
}

// countsHandMade waits until count NodeClaims are counted as made by hand.
func (w *world) countsHandMade(count int) {
	w.t.Helper()
	const series = `autonode_conformance_objects{cause="HandMade",kind="NodeClaim",party="Tenant",state="NotConforming"} `
	w.eventuallyIn(conformancePatience, fmt.Sprintf("%d NodeClaims to be counted", count), func() (bool, string) {
		lines, counted := w.metric("autonode_conformance_objects{"), 0
		for _, line := range lines {
			if text, found := strings.CutPrefix(line, series); found {
				counted, _ = strconv.Atoi(text)
			}
		}
		return len(lines) > 0 && counted == count, strings.Join(lines, "\n")
	})
}

// when Karpenter has no name of its own, a NodeClaim must still name its pool, and one with a wrong pool is
// found by the UID. Nobody can tell one with the UID of a pool from Karpenter's own.
func TestA05_HandMadeNodeClaimsAreRefusedOrFound(t *testing.T) {
	w, pool := guarded(t)
	stray := claimOf("a05-stray", "x11", string(pool.GetUID()))
	stray.SetOwnerReferences(nil)
	w.refused("a claim without an owner", w.cadmin.Create(w.ctx, stray), "OpenshiftNodePool")
	w.countsHandMade(0)
	posing, true_ := claimOf("a05-posing", "x11", "another"), claimOf("a05-true", "x11", string(pool.GetUID()))
	t.Cleanup(func() { w.remove(w.cadmin, posing); w.remove(w.cadmin, true_) })
	began := time.Now()
	for _, claim := range []*unstructured.Unstructured{posing, true_} {
		w.eventually("claim "+claim.GetName()+" to be let through, once the API server has the rule of this policy",
			func() (bool, string) {
				err := w.cadmin.Create(w.ctx, claim)
				return err == nil, fmt.Sprint(err)
			})
	}
	w.countsHandMade(1)
	t.Logf("found %s after it was made", time.Since(began).Round(time.Millisecond))
	w.told("NodeClaim", "a05-posing", "NotConforming")
	w.remove(w.cadmin, posing)
	w.countsHandMade(0)
	w.remove(w.cadmin, true_)

	w.run("--protect-nodeclaims=Open")
	w.says(func() *unstructured.Unstructured { return w.get(policyKind, "default") }, "Protected", "False",
		"OpenByFlag")
	w.eventuallyIn(3*within, "claims to be open", func() (bool, string) {
		err := w.cadmin.Create(w.ctx, stray.DeepCopy(), client.DryRunAll)
		return err == nil, "still refused"
	})
	stray.SetResourceVersion("")
	if err := w.cadmin.Create(w.ctx, stray); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.remove(w.cadmin, stray) })
	w.countsHandMade(1)
}
