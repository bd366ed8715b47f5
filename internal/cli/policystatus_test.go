package cli_test

import (
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// management is a client of the management cluster of examples/policies, or one whose answer to each list is an error.
func management(t *testing.T, answer error) *fake.FakeDynamicClient {
	t.Helper()
	text, err := os.ReadFile("../../examples/policies/management.yaml")
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			{Group: "karpenter.hypershift.openshift.io", Version: "v1beta1", Resource: "autonodepolicies"}: "AutoNodePolicyList",
		}, objectsOf(t, strings.Split(string(text), "\n---\n")...)...)
	if answer != nil {
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, answer
		})
	}
	return client
}

// TestU07_PolicyStatusIsALineForEachPolicy: the page shows the output for four hosted clusters. For a live management
// cluster the output is the same, and needs lists only.
func TestU07_PolicyStatusIsALineForEachPolicy(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "policy", "status", "-f", "../../examples/policies")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q", code, failures)
	}
	shows(t, "../../docs/joinerctl.md", "$ joinerctl policy status -f examples/policies\n", out)
	client := management(t, nil)
	if code, lives, failures := run(t, client, "", "policy", "status", "-A"); code != cli.CodeFindings ||
		failures != "" || lives != out {
		t.Errorf("exit code %d, %q\n%s", code, failures, lives)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("%s of %s: it only reads (U-18)", action.GetVerb(), action.GetResource().Resource)
		}
	}
	code, out, failures = run(t, management(t, nil), "", "policy", "status", "-n", "hcp-a")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != cli.CodeFine || failures != "" ||
		len(lines) != 2 {
		t.Errorf("of a namespace where all is well: exit code %d, %q\n%s", code, failures, out)
	}
	if code, out, _ = run(t, management(t, nil), "", "policy", "status", "-n", "nowhere"); code != cli.CodeFine ||
		out != "There is no AutoNodePolicy.\n" {
		t.Errorf("where there is none: exit code %d\n%s", code, out)
	}
	if _, out, _ = ran(t, "", "policy", "status", "-f", "../../examples/policies", "-o",
		"wide"); !strings.Contains(out, "\n"+strings.Repeat(" ", strings.Index(out, "LEFT TO DO"))+
		"Conforming: 1 AlteredOnWrite (Tenant): NodePool ml\n") {
		t.Errorf("wide, everything that is left to do stands in its column:\n%s", out)
	}
}

// TestU19_PolicyStatusSaysWhatItNeeds: if a right is missing, or the cluster has no policies, it ends with 2 and says
// what to do.
func TestU19_PolicyStatusSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "karpenter.hypershift.openshift.io", Resource: "autonodepolicies"}
	for name, c := range map[string]struct {
		answer error
		want   string
	}{
		"no right": {apierrors.NewForbidden(resource, "", nil),
			`(rule: {apiGroups: ["karpenter.hypershift.openshift.io"], resources: [autonodepolicies], verbs: [list]})`},
		"a guest": {apierrors.NewNotFound(resource, ""), "ask the management cluster"},
	} {
		code, out, failures := run(t, management(t, c.answer), "", "policy", "status")
		if code != cli.CodeFailed || out != "" || !strings.Contains(failures, c.want) {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, failures)
		}
	}
	broken := "apiVersion: karpenter.hypershift.openshift.io/v1beta1\nkind: AutoNodePolicy\n" +
		"metadata: {name: default, namespace: a, generation: many}\n"
	if code, _, failures := ran(t, broken, "policy", "status", "-f", "-"); code != cli.CodeFailed ||
		!strings.Contains(failures, "AutoNodePolicy a/default: ") || !strings.Contains(failures, "generation") {
		t.Errorf("exit code %d, %q", code, failures)
	}
}
