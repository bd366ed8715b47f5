package e2e

import (
	"strings"
	"testing"
)

// K-25, K-28: the check of a real cluster says what a takeover would remove, although the API server does not have
// everything that it asks for. On the way back the check says what Karpenter cannot read, and the installed
// definitions accept its patches.
func TestK25_ACheckOfARealCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux,
		"disruption: {consolidationPolicy: WhenUnderutilized, consolidateAfter: Never, budgets: [{nodes: 1}]}"))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	if err := r.StopJoiner(); err != nil {
		t.Fatal(err)
	}
	r.limit("default", "1", "null")
	r.run("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"template":{"spec":{"expireAfter":"30d"}}}}`)
	says := func(want int, parts []string, args ...string) {
		t.Helper()
		code, out, failures := r.ask(append([]string{"takeover", "check"}, args...)...)
		if code != want || failures != "" {
			t.Errorf("%v ends with %d, want %d: %s\n%s", args, code, want, failures, out)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("%v: %q is missing in\n%s", args, part, out)
			}
		}
	}
	says(1, []string{"danger: NodePool default (node-limits)",
		"it has 2 nodes and its soft limit is 1: Joiner removes 1 of them",
		"note: no Deployment of Karpenter's was found"})
	says(1, []string{`expireAfter "30d": 720h is the same`, "WhenEmptyOrUnderutilized is the same",
		"a number: \"1\" is the same", "kubectl patch nodepool default --type=merge"}, "--back", "--fix", "--dry-run")
	says(0, []string{"it is patched"}, "--back", "--fix", "--yes")
	says(0, []string{"nothing is found"}, "--back")
	spec := r.run("get", "nodepool", "default", "-o",
		"jsonpath={.spec.template.spec.expireAfter} {.spec.disruption.budgets} "+
			"{.spec.disruption.consolidationPolicy}")
	if want := `720h [{"nodes":"1"}] WhenEmptyOrUnderutilized`; spec != want {
		t.Errorf("the pool has %s, want %s", spec, want)
	}
	if err := r.StartJoiner(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.count(1) // what was foretold; the claims have not drifted, or both would go
}
