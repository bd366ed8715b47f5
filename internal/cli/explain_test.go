package cli_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// live is a cluster with a pool of kwok and a pod that is too large for it, as kubectl would read them.
func live(t *testing.T, forbidden ...string) *fake.FakeDynamicClient {
	t.Helper()
	return liveWith(t, forbidden)
}

// liveWith is live with more objects.
func liveWith(t *testing.T, forbidden []string, more ...string) *fake.FakeDynamicClient {
	t.Helper()
	objects := objectsOf(t, append(more,
		"apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n",
		"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default, uid: p}\nspec:\n"+
			"  template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}\n"+
			"status: {conditions: [{type: Ready, status: \"True\"}], ofTomorrow: 1}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: huge, namespace: shop, uid: u}\n"+
			"spec: {containers: [{name: main, resources: {requests: {cpu: 1k}}}], ofTomorrow: 1}\n"+
			"status: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}\n",
	)...)
	lists := map[schema.GroupVersionResource]string{}
	for _, resource := range whatif.Resources() {
		lists[resource.GroupVersionResource] = "List"
	}
	lists[schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}] = "LeaseList"
	lists[schema.GroupVersionResource{Version: "v1", Resource: "events"}] = "EventList"
	for _, kind := range whatif.Workloads() {
		for _, resource := range whatif.WorkloadResources(kind) {
			lists[resource] = "List"
		}
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().GroupResource()
		if slices.Contains(forbidden, resource.Resource) {
			return true, nil, apierrors.NewForbidden(resource, "", nil)
		}
		return false, nil, nil
	})
	return client
}

// TestU04_ExplainReadsTheCluster: what newer definitions have is no error, and nothing is written (U-18, U-20).
func TestU04_ExplainReadsTheCluster(t *testing.T) {
	t.Parallel()
	client := live(t)
	code, out, failures := run(t, client, "", "explain", "pod", "shop/huge")
	if code != cli.CodeFindings || failures != "" ||
		!strings.Contains(out, "pod shop/huge waits: PodTooLarge\n  pool default: cpu=1000 is more than") ||
		!strings.Contains(out, "objects: cluster (") || !strings.Contains(out, "catalogue: default") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("%s of %s: only lists are needed", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

// TestU19_MissingRightsShrinkTheAnswer: each missing right is named. Without pods, nodes or pools there is no answer,
// but the rule that would allow one.
func TestU19_MissingRightsShrinkTheAnswer(t *testing.T) {
	t.Parallel()
	for _, resource := range whatif.Resources() {
		t.Run(resource.Resource, func(t *testing.T) {
			t.Parallel()
			code, out, failures := run(t, live(t, resource.Resource), "", "explain", "pod", "-n", "shop", "huge")
			want := "not checked: " + resource.GroupResource().String() + ", for want of the right to list them"
			if resource.Required {
				if code != cli.CodeFailed ||
					!strings.Contains(failures, "resources: ["+resource.Resource+"], verbs: [list]") || out != "" {
					t.Errorf("exit code %d, %q\n%s", code, failures, out)
				}
			} else if code != cli.CodeFindings || !strings.Contains(out, want) ||
				!strings.Contains(out, "PodTooLarge") {
				t.Errorf("exit code %d, %q; want %q in\n%s", code, failures, want, out)
			}
		})
	}
}

// TestU36_ExplainSaysWhatIsWrong: mistakes end with 2 and one line.
func TestU36_ExplainSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no pod":     {[]string{"shop/none"}, "there is no pod none in namespace shop"},
		"elsewhere":  {[]string{"huge"}, "there is no pod huge in namespace default; there is one in shop"},
		"a bad name": {[]string{"a/b/c"}, `the pod is "a/b/c": name it NAMESPACE/NAME`},
		"another output": {[]string{"huge", "-o", "wid"},
			`--output is "wid": it must be table, wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE ` +
				`or custom-columns=HEADING:.path,...`},
		"nothing": {nil, "name one, not 0: joinerctl explain pod [NAMESPACE/]NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := run(t, live(t), "", append([]string{"explain", "pod"}, c.args...)...)
			if code != cli.CodeFailed || !strings.Contains(failures, c.want) || out != "" {
				t.Errorf("exit code %d, %q; want %q", code, failures, c.want)
			}
		})
	}
}
