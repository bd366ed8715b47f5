package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// eventOn is an event about the pod shop/huge.
func eventOn(name, source, reason, at string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Event\nmetadata: {name: %s, namespace: shop, uid: %s}\n"+
		"involvedObject: {kind: Pod, namespace: shop, name: huge}\nreason: %s\nmessage: what %s says\n"+
		"source: {component: %s}\nlastTimestamp: %q\n", name, name, reason, source, source, at)
}

// TestU20_WhereKarpenterDecidesThatIsSaid: for a pod, node or pool of a cluster, the answer says that Karpenter
// decides. It ends with Karpenter's own last event on the object. If Joiner leads, nobody does, or the Lease may not
// be read, neither is there.
func TestU20_WhereKarpenterDecidesThatIsSaid(t *testing.T) {
	t.Parallel()
	const heading = "Karpenter decides here. By the same objects Joiner would say:\n"
	karpenter := lease("karpenter-a_1", always)
	events := []string{karpenter, eventOn("a", "karpenter", "Old", "2026-11-22T07:00:00Z"),
		eventOn("b", "karpenter", "FailedScheduling", "2026-11-22T08:00:00Z"),
		eventOn("c", "default-scheduler", "Other", "2026-11-22T09:00:00Z")}
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
	for name, c := range map[string]struct {
		forbidden, objects, args []string
		code                     int
		begins, ends             string
	}{
		"its last event": {nil, events, []string{"pod", "shop/huge"}, cli.CodeFindings,
			heading + "pod shop/huge waits: PodTooLarge\n",
			"\nKarpenter's last event on it: FailedScheduling: what karpenter says (2026-11-22T08:00:00Z)\n\nobjects: "},
		"no event": {nil, []string{karpenter}, []string{"pod", "shop/huge"}, cli.CodeFindings, heading,
			"\nKarpenter has no event on it\n\nobjects: "},
		"no right to events": {[]string{"events"}, events, []string{"pod", "shop/huge"}, cli.CodeFindings, heading,
			"\nKarpenter's own events were not read: for want of the right to list events in namespace shop\n\nobjects: "},
		"pool": {nil, events, []string{"nodepool", "default"}, cli.CodeFindings,
			heading + "nodepool default launches nothing: ",
			"\nKarpenter has no event on it\n\nobjects: "},
		"node": {nil, append([]string{node}, events...), []string{"node", "n1"}, cli.CodeFine,
			heading + "node n1 stays: NotManaged\n",
			"\nKarpenter has no event on it\n\nobjects: "},
		"Joiner leads": {nil, append([]string{lease("joiner-a_1", always)}, events[1:]...),
			[]string{"pod", "shop/huge"}, cli.CodeFindings, "pod shop/huge waits: PodTooLarge\n", "\n\nobjects: "},
		"nobody leads": {nil, events[1:], []string{"pod", "shop/huge"}, cli.CodeFindings,
			"pod shop/huge waits: PodTooLarge\n", "\n\nobjects: "},
		"no right to leases": {[]string{"leases"}, events, []string{"pod", "shop/huge"}, cli.CodeFindings,
			"pod shop/huge waits: PodTooLarge\n", "\n\nobjects: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := run(t, liveWith(t, c.forbidden, c.objects...), "",
				append([]string{"explain"}, c.args...)...)
			said := strings.Contains(out, "Karpenter")
			if code != c.code || failures != "" || !strings.HasPrefix(out, c.begins) ||
				!strings.Contains(out, c.ends) || said != strings.HasPrefix(c.begins, heading) {
				t.Errorf("exit code %d, %q\n%s\nwant %d, %q and %q", code, failures, out, c.code, c.begins, c.ends)
			}
		})
	}
	_, out, _ := run(t, liveWith(t, nil, events...), "", "explain", "pod", "shop/huge", "-o", "json")
	if !strings.Contains(out, `"program": "Karpenter"`) || !strings.Contains(out, `"reason": "FailedScheduling"`) {
		t.Errorf("in JSON\n%s", out)
	}
}
