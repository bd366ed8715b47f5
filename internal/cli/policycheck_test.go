package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// TestU07_PolicyCheckSaysWhatAPolicyWouldDo: the page shows a pool that would launch nothing and one with a node that
// would be replaced.
func TestU07_PolicyCheckSaysWhatAPolicyWouldDo(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "policy", "check", "-f", "../../examples/policycheck")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q", code, failures)
	}
	shows(t, "../../docs/joinerctl.md", "$ joinerctl policy check -f examples/policycheck\n", out)
}

// checked checks a policy on pools, both given in YAML.
func checked(t *testing.T, requirements, pools string, args ...string) (code int, out, failures string) {
	t.Helper()
	policy := "apiVersion: karpenter.hypershift.openshift.io/v1beta1\nkind: AutoNodePolicy\n" +
		"metadata: {name: default, namespace: hcp}\nspec: {nodePoolDefaults: {requirements: [" + requirements + "]}}\n"
	return ran(t, policy+pools, append([]string{"policy", "check", "-f", "-"}, args...)...)
}

const kwokWrapper = "---\napiVersion: karpenter.hypershift.openshift.io/v1beta1\nkind: OpenshiftNodePool\nmetadata: {name: web}\n" +
	"spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: " +
	"[{key: kubernetes.io/arch, operator: In, values: [amd64]}]}}}\n"

// TestU07_PolicyCheckEndsAsAllCommandsDo: 0 if the policy changes nothing, 1 if it does, 2 if there is no answer
// (U-30).
func TestU07_PolicyCheckEndsAsAllCommandsDo(t *testing.T) {
	t.Parallel()
	const fine = "{key: kubernetes.io/os, operator: In, values: [linux, windows]}"
	for name, c := range map[string]struct {
		requirements, pools string
		code                int
		want                string
	}{
		"nothing comes of it": {fine, kwokWrapper, cli.CodeFine, "web   72         72     0      0      -\n"},
		"no type is left": {"{key: node.kubernetes.io/instance-type, operator: In, values: [unheard-of]}", kwokWrapper,
			cli.CodeFindings, "launches nothing: no instance type of the catalogue is left"},
		"both contradict each other": {"{key: kubernetes.io/arch, operator: In, values: [arm64]}", kwokWrapper,
			cli.CodeFindings, "launches nothing: kubernetes.io/arch: the policy allows"},
		"a class that may not be": {fine, strings.Replace(kwokWrapper, "karpenter.kwok.sh", "example.com", 1),
			cli.CodeFindings, "not written: "},
		"the policy is wrong": {"{key: kubernetes.io/os, operator: Foo}", kwokWrapper, cli.CodeFindings,
			"The policy is not valid, and nothing of it would be applied:\n  spec.nodePoolDefaults.requirements[0].operator: "},
		"no pool, no cluster": {fine, "", cli.CodeFailed, "no cluster"},
		"a field that is not there": {fine, strings.Replace(kwokWrapper, "template:", "tmeplate:", 1), cli.CodeFailed,
			`unknown field "tmeplate"`},
		"two policies": {fine, "---\napiVersion: karpenter.hypershift.openshift.io/v1beta1\nkind: AutoNodePolicy\n" +
			"metadata: {name: other}\n" + kwokWrapper, cli.CodeFailed, "have 2 AutoNodePolicies"},
	} {
		code, out, failures := checked(t, c.requirements, c.pools)
		if code != c.code || !strings.Contains(out+failures, c.want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %d and %q", name, code, out, failures, c.code, c.want)
		}
	}
}

// TestU07_PolicyCheckReadsTheHostedCluster: of a live cluster the same is said as of files, by lists alone (U-18).
func TestU07_PolicyCheckReadsTheHostedCluster(t *testing.T) {
	t.Parallel()
	var text []string
	for _, name := range []string{"nodes.yaml", "policy.yaml"} {
		content, err := os.ReadFile(filepath.Join("../../examples/policycheck", name))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, strings.Split(string(content), "\n---\n")...)
	}
	lists := map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}:                                          "List",
		{Group: "apps", Version: "v1", Resource: "replicasets"}:                                          "List",
		{Group: "apps", Version: "v1", Resource: "statefulsets"}:                                         "List",
		{Group: "batch", Version: "v1", Resource: "jobs"}:                                                "List",
		{Group: "batch", Version: "v1", Resource: "cronjobs"}:                                            "List",
		{Version: "v1", Resource: "replicationcontrollers"}:                                              "List",
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}:                         "List",
		{Group: "karpenter.hypershift.openshift.io", Version: "v1beta1", Resource: "openshiftnodepools"}: "List",
		{Group: "karpenter.hypershift.openshift.io", Version: "v1beta1", Resource: "autonodepolicies"}:   "List",
	}
	for _, resource := range whatif.Resources() {
		lists[resource.GroupVersionResource] = "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objectsOf(t, text...)...)
	policy := text[len(text)-3]
	code, out, failures := run(t, client, policy, "policy", "check", "-f", "-")
	if code != cli.CodeFindings || failures != "" ||
		!strings.Contains(out, "\nweb   17         2      2      1      replaces") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("%s of %s: it only reads", action.GetVerb(), action.GetResource().Resource)
		}
	}
}
