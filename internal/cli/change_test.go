package cli_test

import (
	"encoding/json"
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

// TestU03_ThePageShowsWhatAChangeDoes: the page's example is run, and its output stands there word for word.
func TestU03_ThePageShowsWhatAChangeDoes(t *testing.T) {
	t.Parallel()
	const page = "../../docs/simulate.md"
	code, out, failures := simulated(t, "", "-f", "../../examples/simulate", "--change", "../../examples/change")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q; want %d, since a pod waits that did not", code, failures, cli.CodeFindings)
	}
	shows(t, page, "$ joinerctl simulate -f examples/simulate --change examples/change\n", out)
}

// running is a cluster with two nodes, as examples/explain has it, and a Deployment whose pods need one of them.
func running(t *testing.T, forbidden ...string) *fake.FakeDynamicClient {
	t.Helper()
	objects := objectsOf(t,
		"apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n",
		"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default, uid: p}\nspec:\n  template: {spec: "+
			"{nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}\n"+
			"  disruption: {consolidateAfter: 0s}\nstatus: {conditions: [{type: Ready, status: \"True\"}]}\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, uid: d}\nspec: {replicas: 1, "+
			"selector: {matchLabels: {app: web}}, "+
			"strategy: {type: RollingUpdate}, template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Always, "+
			"containers: [{name: main, "+
			"terminationMessagePath: /dev/termination-log, resources: {requests: {cpu: \"3\"}}}]}}}\n",
		"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-1, namespace: shop, uid: r, ownerReferences: "+
			"[{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}\n"+
			"spec: {replicas: 1, selector: {matchLabels: {app: web}}}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web-1-x, namespace: shop, uid: u, labels: {app: web}, "+
			"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r, controller: true}]}\n"+
			"spec: {containers: [{name: main, resources: {requests: {cpu: \"3\"}}}]}\n"+
			"status: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}\n",
	)
	lists := map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}: "List", {Group: "apps", Version: "v1",
			Resource: "replicasets"}: "List",
		{Group: "apps", Version: "v1", Resource: "statefulsets"}: "List", {Group: "batch", Version: "v1",
			Resource: "jobs"}: "List",
		{Group: "batch", Version: "v1", Resource: "cronjobs"}: "List", {Version: "v1",
			Resource: "replicationcontrollers"}: "List",
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}: "List",
	}
	for _, resource := range whatif.Resources() {
		lists[resource.GroupVersionResource] = "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().GroupResource()
		if slices.Contains(forbidden, resource.Resource) {
			return true, nil, apierrors.NewForbidden(resource, "", nil)
		}
		return false, nil, nil
	})
	return client
}

// TestU03_SimulateReadsTheCluster: without -f, simulate plans for the cluster, and for changes of it. Nothing is
// written (U-18). The Deployment's own controller makes its pods, so none is counted twice.
func TestU03_SimulateReadsTheCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"one plan": {nil, cli.CodeFine, []string{"1 node for 1 pod", "objects: cluster ("}},
		"a scale": {[]string{"--scale", "shop/web=5"}, cli.CodeFine,
			[]string{"  - spec.replicas: 1\n  + spec.replicas: 5\n", "waiting pods   0        0             0",
				"Comes"}},
		"a pool that goes": {[]string{"--delete", "nodepool/default"}, cli.CodeFindings,
			[]string{"! NoNodePool: shop/web (1)", "NodePoolDeleted", "evicts shop/web 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := running(t)
			code, out, failures := run(t, client, "", append([]string{"simulate"}, c.args...)...)
			if code != c.code || failures != "" {
				t.Errorf("exit code %d, %q", code, failures)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			for _, action := range client.Actions() {
				if action.GetVerb() != "list" {
					t.Errorf("%s of %s: only lists are needed", action.GetVerb(), action.GetResource().Resource)
				}
			}
		})
	}
}

// TestU03_AManifestIsAppliedAsKubectlDoes: defaults of the API server are no difference, and do not replace the pods.
func TestU03_AManifestIsAppliedAsKubectlDoes(t *testing.T) {
	t.Parallel()
	const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: " +
		"1, selector: {matchLabels: {app: web}}, " +
		"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, resources: {requests: {cpu: " +
		"3000m}}}]}}}\n"
	code, out, failures := run(t, running(t), manifest, "simulate", "--change", "-")
	if code != cli.CodeFine || failures != "" || !strings.HasPrefix(out, "nothing changes: ") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
	code, out, failures = run(t, running(t), strings.Replace(manifest, "3000m", "7", 1), "simulate", "--change", "-",
		"-o", "json")
	var answer struct {
		APIVersion, Kind string
		Changes          []whatif.ObjectChange
		Quiet            struct{ Nodes int }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v: %s", err, failures)
	}
	const path = "spec.template.spec.containers[main].resources.requests.cpu"
	if code != cli.CodeFine || len(answer.Changes) != 1 || answer.Changes[0].Path != path ||
		answer.Changes[0].New != "7" {
		t.Errorf("exit code %d, changes %+v", code, answer.Changes)
	}
	if answer.APIVersion != "cli.joiner.sh/v1" || answer.Kind != "Comparison" || answer.Quiet.Nodes != 1 {
		t.Errorf("%+v", answer)
	}
}

// TestU03_FilesAreAddedToTheCluster: objects of files take the place of those of the same kind and name.
func TestU03_FilesAreAddedToTheCluster(t *testing.T) {
	t.Parallel()
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1-x, namespace: shop}\nspec: {containers: [{name: " +
		"main, resources: {requests: {cpu: 1k}}}]}\n"
	code, out, failures := run(t, running(t), pod, "simulate", "--from", "cluster", "-f", "-")
	if code != cli.CodeFindings || failures != "" ||
		!strings.Contains(out, "shop/web-1-x: 1 pod waits, PodTooLarge") ||
		!strings.Contains(out, "objects: cluster and files (") || !strings.Contains(out, " 1 Pod,") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
}

// TestU19_SimulateSaysWhatItMayNotRead: a right that is missing is named.
func TestU19_SimulateSaysWhatItMayNotRead(t *testing.T) {
	t.Parallel()
	code, out, failures := run(t, running(t, "deployments"), "", "simulate")
	if code != cli.CodeFine || failures != "" ||
		!strings.Contains(out, "note: not looked at: deployments.apps, for want of the right to list them") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
	code, _, failures = run(t, running(t, "deployments"), "", "simulate", "--scale", "shop/web=3")
	if code != cli.CodeFailed || !strings.Contains(failures, "as far as it could be read") {
		t.Errorf("exit code %d, %q", code, failures)
	}
}

// TestU36_ChangesSayWhatIsWrong: each mistake is told with the flag, the value and what is allowed, and ends with 2.
func TestU36_ChangesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	files := []string{"-f", "../../examples/simulate"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"from":      {[]string{"--from", "dump"}, `--from is "dump": it must be files or cluster`},
		"until":     {[]string{"--until", "night"}, `--until is "night": it must be plan or quiet`},
		"no change": {[]string{"--fail-on", "any"}, `--fail-on is "any" and nothing changes: add --change`},
		"kubeconfig": {[]string{"--from", "files", "--kubeconfig", "x"},
			"--kubeconfig names a cluster, and --from files asks none"},
		"fail-on": {[]string{"--scale", "shop/web=1", "--fail-on", "price+5"},
			`--fail-on has "price+5": allowed are new-waiting, held, drift`},
		"a number": {[]string{"--scale", "shop/web=1", "--fail-on", "price+$NaN"}, `--fail-on has "price+$NaN"`},
		"scale":    {[]string{"--scale", "web"}, `--scale is "web": write NAMESPACE/DEPLOYMENT=N`},
		"delete":   {[]string{"--delete", "web"}, `--delete is "web": name it KIND/NAME`},
		"remove-node": {[]string{"--remove-node", "n1"},
			"--remove-node n1: there is no node and no NodeClaim of that name"},
		"no such file": {[]string{"--change", "none.yaml"}, "none.yaml: no such file"},
		"input twice":  {[]string{"-f", "-", "--change", "-"}, "standard input can be read once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := simulated(t, "", append(slices.Clone(files), c.args...)...)
			if code != cli.CodeFailed || !strings.Contains(failures, c.want) || out != "" {
				t.Errorf("exit code %d, %q on stdout, %q; want %q", code, out, failures, c.want)
			}
		})
	}
}
