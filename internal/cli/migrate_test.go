package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	nodePools = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec: {group: karpenter.sh, names: {kind: NodePool}, versions: [{name: v1, served: true, storage: true}, {name: v1beta1, served: true}]}
status: {storedVersions: [v1beta1, v1]}
`

const (
	pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\n"
	held = "apiVersion: karpenter.sh/v1\nkind: NodePool\n" +
		"metadata: {name: broken, annotations: {compatibility.karpenter.sh/conversion-problem: spec.weight is wrong}}\n"
	clean = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: new}\nspec: {}\n"
	old   = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: old}\n" +
		"spec: {template: {spec: {requirements: [], nodeClassRef: {name: a}}}}\n"
)

// objectsOf reads manifests, one object each.
func objectsOf(t *testing.T, manifests ...string) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, manifest := range manifests {
		data, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func cluster(t *testing.T, manifests ...string) *fake.FakeDynamicClient {
	t.Helper()
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		definitions: "CustomResourceDefinitionList", nodePools: "NodePoolList",
		{Group: "karpenter.sh", Version: "v1beta1", Resource: "nodepools"}:      "NodePoolList",
		{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}:          "NodeClaimList",
		{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}: "EC2NodeClassList",
		{Version: "v1", Resource: "nodes"}:                                      "NodeList",
		{Version: "v1", Resource: "pods"}:                                       "PodList",
	}, objectsOf(t, manifests...)...)
}

func run(t *testing.T, client dynamic.Interface, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, failures bytes.Buffer
	connect := func(cli.Connection) (dynamic.Interface, error) {
		if client == nil {
			return nil, errors.New("no usable kubeconfig")
		}
		return client, nil
	}
	code = cli.Run(t.Context(), cli.Config{Client: connect, In: strings.NewReader(in), Out: &out, Err: &failures},
		args)
	fits(t, code, out.String(), args)
	return code, out.String(), failures.String()
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// V-25: the exit code tells a pipeline whether something is left.
func TestCheckOfFiles(t *testing.T) {
	t.Parallel()
	folder := filepath.Dir(file(t, "a.yaml", clean+"---\n# a comment\n---\n"+old))
	for want, row := range map[string]struct {
		in   string
		args []string
		code int
	}{
		"nothing of v1beta1 is left; checked 1 NodePool": {clean, []string{"-f", "-"}, cli.CodeFine},
		"document 3: OldManifest":                        {"", []string{"-f", folder}, cli.CodeFindings},
		`"code": "OldManifest"`: {old, []string{"-f", "-", "-o", "json"},
			cli.CodeFindings},
		"NodePool old in -, document 1": {`{"kind":"List","items":[` + asJSON(t, old) + `]}`,
			[]string{"-f", "-"}, cli.CodeFindings},
		"joinerctl: --output is \"xml\": it must be table, wide": {clean, []string{"-f", "-", "-o", "xml"},
			cli.CodeFailed},
		"joinerctl: -f nowhere: ": {"", []string{"-f", "nowhere"}, cli.CodeFailed},
		"joinerctl: -, document 2: it is not an object": {clean + "---\n- 7\n", []string{"-f", "-"},
			cli.CodeFailed},
		"joinerctl: -, document 1: yaml":  {"a: [", []string{"-f", "-"}, cli.CodeFailed},
		"no .yaml, .yml or .json file":    {"", []string{"-f", t.TempDir()}, cli.CodeFailed},
		"joinerctl: no usable kubeconfig": {"", nil, cli.CodeFailed},
		"unknown flag: --nonsense":        {"", []string{"--nonsense"}, cli.CodeFailed},
		"joinerctl: -, document 1: items[1] is not an object": {`{"kind":"List","items":[` + asJSON(t, clean) + `,7]}`,
			[]string{"-f", "-"}, cli.CodeFailed},
		"joinerctl: - has more than 67108864 bytes: split it": {clean + "# " + strings.Repeat("x", 64<<20),
			[]string{"-f", "-"}, cli.CodeFailed},
		"joinerctl: and 1 more": {"", slices.Repeat([]string{"-f", "nowhere"}, 21),
			cli.CodeFailed},
	} {
		code, stdout, stderr := run(t, nil, row.in, append([]string{"migrate", "check"}, row.args...)...)
		if code != row.code || !strings.Contains(stdout+stderr, want) || (code == cli.CodeFailed) != (stderr != "") {
			t.Errorf("%v: exit %d, %q, %q; want %d and %q", row.args, code, stdout, stderr, row.code, want)
		}
	}
}

func asJSON(t *testing.T, manifest string) string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// V-25: over a cluster; nothing is written.
func TestCheckOfACluster(t *testing.T) {
	t.Parallel()
	client := cluster(t, definition, pool, held)
	code, stdout, stderr := run(t, client, "", "migrate", "check", "-o", "json")
	var report struct {
		Findings []struct{ Code, Name string }
		Checked  map[string]int
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != cli.CodeFindings {
		t.Fatalf("exit %d, %s, %s, error %v", code, stdout, stderr, err)
	}
	if len(report.Findings) != 2 || report.Findings[0].Code != "StoredVersion" ||
		report.Findings[1].Name != "broken" || report.Checked["NodePool"] != 2 {
		t.Errorf("report %+v", report)
	}
	for _, action := range client.Actions() {
		if !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			t.Errorf("the check does %s", action.GetVerb())
		}
	}
	if code, _, stderr := run(t, cluster(t), "", "migrate", "check"); code != cli.CodeFailed ||
		!strings.Contains(stderr, "none of the CRDs") {
		t.Errorf("a cluster without CRDs: exit %d, %s", code, stderr)
	}
}

// V-25: each object is written as it is, and then v1beta1 is removed from the stored versions. A conflict is tried
// again. An object that is gone meanwhile needs nothing.
func TestStorageIsMigrated(t *testing.T) {
	t.Parallel()
	client := cluster(t, definition, pool, clean)
	conflicts := 0
	client.PrependReactor("update", "nodepools", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured).GetName()
		switch {
		case name == "new":
			return true, nil, apierrors.NewNotFound(nodePools.GroupResource(), name)
		case conflicts == 0:
			conflicts++
			return true, nil, apierrors.NewConflict(nodePools.GroupResource(), name, errors.New("changed"))
		}
		return false, nil, nil
	})
	code, stdout, stderr := run(t, client, "", "migrate", "storage", "--yes")
	if code != cli.CodeFine || !strings.Contains(stdout, "nodepools.karpenter.sh: 2 rewritten; all is stored in v1") ||
		!strings.Contains(stdout, "nodeclaims.karpenter.sh: the cluster does not have it") {
		t.Fatalf("exit %d, %s, %s", code, stdout, stderr)
	}
	if got := stored(t, client); !slices.Equal(got, []string{"v1"}) || conflicts != 1 {
		t.Errorf("stored versions %v, %d conflicts", got, conflicts)
	}
	if code, stdout, _ := run(t, client, "", "migrate", "storage", "--yes"); code != cli.CodeFine ||
		!strings.Contains(stdout, "nodepools.karpenter.sh: 0 rewritten; all is stored in v1") {
		t.Errorf("again: exit %d, %s", code, stdout)
	}
}

// V-25: NodeClaims and nodes name their owners in v1 then; other owners stay as they are, and a dry run changes none.
func TestOwnersAreNamedInV1(t *testing.T) {
	t.Parallel()
	const claim = "apiVersion: karpenter.sh/v1\nkind: NodeClaim\n" +
		"metadata: {name: a, ownerReferences: [{apiVersion: karpenter.sh/v1beta1, kind: NodePool, name: default, uid: p}]}\n"
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: a, ownerReferences: [{apiVersion: " +
		"example.com/v1beta1, kind: NodeClaim, name: a, uid: x}, {apiVersion: karpenter.sh/v1beta1, kind: NodeClaim, name: a, uid: c}]}\n"
	const claims = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: nodeclaims.karpenter.sh}\nspec: {versions: [{name: v1, served: true, storage: true}]}\n" +
		"status: {storedVersions: [v1]}\n"
	client := cluster(t, claims, claim, node)
	if code, stdout, _ := run(t, client, "", "migrate", "check"); code != cli.CodeFindings ||
		strings.Count(stdout, "OldOwner") != 2 {
		t.Errorf("check: exit %d, %s", code, stdout)
	}
	if code, stdout, _ := run(t, client, "", "migrate", "storage", "--dry-run"); code != cli.CodeFine ||
		!strings.Contains(stdout, "nodeclaims.karpenter.sh: 1 would be rewritten") ||
		strings.Contains(owners(t, client), "karpenter.sh/v1 ") {
		t.Errorf("dry run: exit %d, %s, owners %s", code, stdout, owners(t, client))
	}
	if code, stdout, stderr := run(t, client, "", "migrate", "storage", "--yes"); code != cli.CodeFine ||
		!strings.Contains(stdout, "nodes: 1 rewritten; all name their owners in v1") {
		t.Errorf("exit %d, %s, %s", code, stdout, stderr)
	}
	if got := owners(t,
		client); got != "karpenter.sh/v1 NodePool example.com/v1beta1 NodeClaim karpenter.sh/v1 NodeClaim " {
		t.Errorf("owners %s", got)
	}
	if code, stdout, _ := run(t, client, "", "migrate", "check"); code != cli.CodeFine {
		t.Errorf("check after it: exit %d, %s", code, stdout)
	}
}

// V-25: whoever wrote v1beta1 before the migration is removed from the managed fields, and found again after a later
// write. Managers of server-side apply keep their fields.
func TestOldWritersAreForgotten(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ entries, left string }{
		"others stay": {
			"{manager: a, operation: Update, apiVersion: karpenter.sh/v1beta1}, {manager: b, operation: Apply, " +
				"apiVersion: karpenter.sh/v1beta1}, {manager: c, operation: Update, apiVersion: karpenter.sh/v1}",
			"bc",
		},
		// One empty entry tells the API server that there are none.
		"none is left": {"{manager: a, operation: Update, apiVersion: karpenter.sh/v1beta1}", ""},
	} {
		pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default, managedFields: [" +
			row.entries + "]}\n"
		client := cluster(t, strings.Replace(definition, "storedVersions: [v1beta1, v1]", "storedVersions: [v1]", 1),
			pool)
		if code, stdout, stderr := run(t, client, "", "migrate", "storage", "--yes"); code != cli.CodeFine ||
			!strings.Contains(stdout, "nodepools.karpenter.sh: 1 rewritten") {
			t.Errorf("%s: exit %d, %s, %s", name, code, stdout, stderr)
		}
		o, err := client.Resource(nodePools).Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left := ""
		for _, entry := range o.GetManagedFields() {
			left += entry.Manager
		}
		if left != row.left || len(o.GetManagedFields()) == 0 {
			t.Errorf("%s: managers %q, %d entries", name, left, len(o.GetManagedFields()))
		}
	}
}

func owners(t *testing.T, client dynamic.Interface) string {
	t.Helper()
	found := ""
	for _, resource := range []schema.GroupVersionResource{
		{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}, {Version: "v1", Resource: "nodes"},
	} {
		o, err := client.Resource(resource).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, owner := range o.GetOwnerReferences() {
			found += owner.APIVersion + " " + owner.Kind + " "
		}
	}
	return found
}

// V-25: a cluster that has v1beta1 alone is read in it, before anything is changed.
func TestCheckOfAClusterWithoutV1(t *testing.T) {
	t.Parallel()
	client := cluster(t, strings.Replace(definition, "{name: v1, served: true, storage: true}, ", "", 1), old)
	code, stdout, _ := run(t, client, "", "migrate", "check")
	if code != cli.CodeFindings || !strings.Contains(stdout, "1 NodePool") || strings.Contains(stdout, "OldManifest") {
		t.Errorf("exit %d, %s", code, stdout)
	}
}

// V-24, V-25: what cannot be converted is not written, and v1beta1 not forgotten.
func TestStorageOfABrokenObjectIsLeft(t *testing.T) {
	t.Parallel()
	client := cluster(t, definition, pool, held)
	code, stdout, _ := run(t, client, "", "migrate", "storage", "--yes")
	if code != cli.CodeFindings || !strings.Contains(stdout, "broken is left: spec.weight is wrong") ||
		!strings.Contains(stdout, "1 rewritten, 1 left") {
		t.Fatalf("exit %d, %s", code, stdout)
	}
	if got := stored(t, client); len(got) != 2 {
		t.Errorf("stored versions %v", got)
	}
	dry := cluster(t, definition, pool)
	code, stdout, _ = run(t, dry, "", "migrate", "storage", "--dry-run")
	if code != cli.CodeFine || !strings.Contains(stdout, "1 would be rewritten") || len(stored(t, dry)) != 2 {
		t.Errorf("dry run: exit %d, %s", code, stdout)
	}
	for _, action := range dry.Actions() {
		if action.GetVerb() == "update" {
			t.Error("a dry run writes")
		}
	}
	early := cluster(t, strings.Replace(definition, "name: v1, served: true, storage: true",
		"name: v1beta1, storage: true", 1))
	if code, _, stderr := run(t, early, "", "migrate", "storage", "--yes"); code != cli.CodeFailed ||
		!strings.Contains(stderr, "apply the CRD that stores v1 first") {
		t.Errorf("a CRD that stores v1beta1: exit %d, %s", code, stderr)
	}
}

func stored(t *testing.T, client dynamic.Interface) []string {
	t.Helper()
	crd, err := client.Resource(definitions).Get(t.Context(), "nodepools.karpenter.sh", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// U-13: the help names every command, and a wrong one is one line.
func TestHelpAndWrongCommands(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{"migrate": nil, "storage": {"migrate"},
		"Exit code:": {"migrate", "check", "--help"}} {
		if code, stdout, _ := run(t, nil, "", args...); code != cli.CodeFine || !strings.Contains(stdout, want) {
			t.Errorf("%v: exit %d, %s", args, code, stdout)
		}
	}
	if code, _, stderr := run(t, nil, "", "migrat"); code != cli.CodeFailed || !strings.Contains(stderr,
		`there is no command "migrat" in joinerctl; do you mean migrate?`) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
