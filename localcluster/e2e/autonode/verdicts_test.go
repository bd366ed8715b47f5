package autonode

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// the status of a wrapper is only output. The customer may write it, and change what the operator writes.

// celOf spells a value in the Common Expression Language, of any type wherever it stands.
func celOf(value any) string {
	switch value := value.(type) {
	case object:
		var fields []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fields = append(fields, fmt.Sprintf("%q: dyn(%s)", key, celOf(value[key])))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, "dyn("+celOf(item)+")")
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return show(value)
}

// forgery replaces fields of a wrapper's status by others.
type forgery struct {
	conditions func(said object) // changes each condition; nil leaves them
	observed   object            // nil leaves it
}

// forgeries returns changes of every field by which a status is judged, one at a time and all at once.
func forgeries(status string, observed object) []forgery {
	opposite := map[string]string{"True": "Applied", "False": "ReconcileFailed"}[status]
	return []forgery{
		{conditions: func(said object) { said["status"] = status }},
		{conditions: func(said object) { said["reason"] = opposite }},
		{conditions: func(said object) { said["observedGeneration"] = int64(99) }},
		{observed: observed},
		{observed: observed, conditions: func(said object) {
			said["status"], said["reason"], said["observedGeneration"], said["message"] = status, opposite, int64(1),
				"forged"
		}},
	}
}

// forge puts a forgery into force for one OpenshiftNodePool; the forged status is made from its present one.
func (w *world) forge(name string, f forgery) {
	w.t.Helper()
	var patches []string
	replace := func(field string, value any) {
		patches = append(patches, fmt.Sprintf(`JSONPatch{op: "add", path: "/status/%s", value: %s}`, field,
			celOf(value)))
	}
	if f.conditions != nil {
		conditions := field(w.get(poolWrapper, name), "status", "conditions").([]any)
		for _, c := range conditions {
			f.conditions(c.(object))
		}
		replace("conditions", conditions)
	}
	if f.observed != nil {
		replace("observedPolicy", f.observed)
	}
	w.mutate(mutation{name: name, group: group, resource: "openshiftnodepools/status", object: name, expression: "[" +
		strings.Join(patches, ", ") + "]"})
}

// forgedPools makes five pools. From the moment when a pool's status says reason, it is forged, each in another way.
func (w *world) forgedPools(prefix, status, reason string, all []forgery, spec object) {
	w.t.Helper()
	for i := range all {
		w.pool(fmt.Sprintf("%s-%d", prefix, i), spec)
	}
	for i, f := range all {
		name := fmt.Sprintf("%s-%d", prefix, i)
		w.poolSays(name, "PolicyApplied", status, reason)
		w.forge(name, f)
	}
	began := time.Now()
	// any write of the status triggers the forgery, as Karpenter's does with the NodePool's
	for i := range all {
		name := fmt.Sprintf("%s-%d", prefix, i)
		w.eventually("the status of "+name+" to be forged", func() (bool, string) {
			_ = w.patchStatus(name, object{"nodes": time.Since(began).Milliseconds()})
			now := w.get(poolWrapper, name)
			said := condition(now, "PolicyApplied")
			if all[i].observed != nil {
				return show(field(now, "status", "observedPolicy")) == show(all[i].observed),
					show(field(now, "status"))
			}
			return said["status"] != status || said["reason"] != reason || said["observedGeneration"] == int64(99),
				show(said)
		})
	}
}

func (w *world) patchStatus(name string, status object) error {
	body := object{"status": status}
	return w.cadmin.Status().Patch(w.ctx, newObject(poolWrapper, "", name, nil), mergePatch(body))
}

// a policy that cannot be merged never becomes Ready, however the status of wrappers is forged.
func TestA03_AForgedStatusDoesNotMakeThePolicyReady(t *testing.T) {
	w := begin(t)
	w.policy(restrict(numbered(60, "p")...))
	all := forgeries("True", object{"uid": "another", "generation": int64(7)})
	w.forgedPools("a03-no", "False", "TooManyRequirements", all, wants(numbered(60, "u")...))
	// Ready names all of them within a second or two. Until then it names the first ones, and it is never True.
	failed := func() int {
		ready := condition(w.get(policyKind, "default"), "Ready")
		message, _ := ready["message"].(string)
		named := 0
		for i := range all {
			if strings.Contains(message, fmt.Sprintf("a03-no-%d (TooManyRequirements)", i)) {
				named++
			}
		}
		if ready["status"] != "False" || named == 0 {
			t.Fatalf("Ready is %s", show(ready))
		}
		return named
	}
	w.policySays("False", "TooManyRequirements", "a03-no-0 (TooManyRequirements)")
	w.eventually("Ready to name all", func() (bool, string) {
		n := failed()
		return n == len(all),
			fmt.Sprint(n, " are named")
	})
	w.stays("Ready of the policy", func() any { return failed() })
	w.policySays("False", "TooManyRequirements", "status of 5")
	if lines := w.metric(`autonode_altered_writes_total{kind="status"}`); len(lines) != 1 ||
		strings.HasSuffix(lines[0], " 0") {
		t.Errorf("altered writes of a status are counted as %v", lines)
	}
}

// and a merged policy stays Ready, whatever they say.
func TestA03_AForgedStatusDoesNotMakeThePolicyNotReady(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	all := forgeries("False", object{"uid": "another", "generation": int64(7)})
	w.forgedPools("a03-yes", "True", "Applied", all, wants(in(instanceType, "b")))
	w.policySays("True", "Applied", "applied to 6 of 6", "status of 5")
	w.stays("Ready of the policy", func() any {
		return condition(w.get(policyKind, "default"), "Ready")["status"]
	})
}

// a new operator knows nothing about the wrappers, and says nothing before it had time to look.
func TestA03_ARestartDoesNotMakeReadyFlap(t *testing.T) {
	const pools = 200
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	t.Cleanup(func() { w.removePools() })
	w.createPools(pools)
	w.eventuallyIn(poolPatience, "the policy to be Ready", func() (bool, string) {
		ready := condition(w.get(policyKind, "default"), "Ready")
		message, _ := ready["message"].(string)
		return ready["status"] == "True" && strings.Contains(message, "201 of 201"), show(ready)
	})
	before := w.get(policyKind, "default")
	w.restart()
	began := time.Now()
	seen := map[string]bool{}
	w.eventuallyIn(poolPatience, "the operator to have looked at all wrappers", func() (bool, string) {
		seen[show(condition(w.get(policyKind, "default"), "Ready")["status"])] = true
		lines := w.metric(`autonode_wrappers{applied="True",kind="OpenshiftNodePool",party=""}`)
		return len(lines) == 1 && strings.HasSuffix(lines[0], fmt.Sprintf(" %d", pools)), strings.Join(lines, "\n")
	})
	t.Logf("%d wrappers were looked at %s after the start", pools, time.Since(began).Round(time.Millisecond))
	w.stays("the policy", func() any { return w.get(policyKind, "default").GetResourceVersion() })
	if now := w.get(policyKind, "default"); len(seen) != 1 || now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("Ready was %v on the way, and the status was written: %s", seen, show(field(now, "status")))
	}
}
