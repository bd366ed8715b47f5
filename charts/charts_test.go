package charts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

// render executes the templates of a chart with its values, changed by set, as Helm would (chartstest.Render, which
// tools/helm compares with Helm). It returns the documents by kind and name.
func render(t *testing.T, chart string, set map[string]any) map[string][]byte {
	t.Helper()
	return renderWhere(t, chart, set, nil)
}

// apiVersions are the kinds that a cluster serves, each as group/version/kind.
type apiVersions = chartstest.Served

// renderWhere is render for a cluster that serves more than Kubernetes does.
func renderWhere(t *testing.T, chart string, set map[string]any, served apiVersions) map[string][]byte {
	t.Helper()
	documents, err := chartstest.Render(chart, set, served)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	content, err := fs.ReadFile(charts.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func given() map[string]any {
	return map[string]any{"image": "joiner-operator:1", "aws.infraID": "infra", "aws.instanceProfile": "nodes",
		"userData.secret": "user-data", "userData.amiIDs": []any{"ami-1"}}
}

// R41: the Role has the verbs of the source and nothing else. User data adds a rule only if it is requested.
func TestTheRoleIsExactlyTheOneOfTheSource(t *testing.T) {
	t.Parallel()
	const group = "karpenter.hypershift.openshift.io"
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"autonodepolicies"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{group}, Resources: []string{"autonodepolicies/status"},
			Verbs: []string{"update", "patch"}},
	}
	role := func(documents map[string][]byte) (role rbacv1.Role) {
		if err := yaml.UnmarshalStrict(documents["Role/joiner-operator"], &role); err != nil {
			t.Fatal(err)
		}
		return role
	}
	if got := role(render(t, charts.Operator, given())); !reflect.DeepEqual(got.Rules, want) ||
		got.Namespace != "hcp-a" {
		t.Errorf("the Role in namespace %s has %v", got.Namespace, got.Rules)
	}
	rules, err := charts.ManagementRules()
	if err != nil {
		t.Fatal(err)
	}
	var same []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(rules, &same); err != nil || !reflect.DeepEqual(same, want) {
		t.Errorf("ManagementRules are %v, error %v", same, err)
	}
	secrets := given()
	secrets["userData.fromSecrets"] = true
	want = append(want, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
		Verbs: []string{"list"}})
	if got := role(render(t, charts.Operator, secrets)); !reflect.DeepEqual(got.Rules, want) {
		t.Errorf("with Secrets the Role has %v", got.Rules)
	}
	if documents := render(t, charts.Operator, given()); len(documents) != 4 {
		t.Errorf("the chart makes %v, want no ClusterRole and no CRD unless asked for",
			slices.Sorted(maps.Keys(documents)))
	}
}

// The hosted cluster's ClusterRole has no more than the guest's rules, and grants nothing on Secrets, RBAC or pods.
func TestTheGuestsRightsAreNarrow(t *testing.T) {
	t.Parallel()
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(render(t, charts.Guest, nil)["ClusterRole/joiner-operator"], &role); err != nil {
		t.Fatal(err)
	}
	groups := []string{"karpenter.hypershift.openshift.io", "karpenter.sh", "karpenter.k8s.aws",
		"admissionregistration.k8s.io", "events.k8s.io"}
	for _, rule := range role.Rules {
		for _, part := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			if part == "*" {
				t.Errorf("the rule %v has a wildcard", rule)
			}
		}
		if slices.Equal(rule.APIGroups, []string{""}) && slices.Equal(rule.Resources, []string{"nodes"}) {
			// nodes are compared with the policy, and never written
			if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
				t.Errorf("the rule %v lets nodes be written", rule)
			}
			continue
		}
		for _, group := range rule.APIGroups {
			if !slices.Contains(groups, group) {
				t.Errorf("the rule %v is about another group than %v", rule, groups)
			}
		}
	}
}

// Rights on certificates come only with the option, and only for the two signers of kubelets.
func TestRightsOnCertificatesComeWithTheOption(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(render(t, charts.Guest,
			map[string]any{"approveKubeletCSRs": on})["ClusterRole/joiner-operator"], &role); err != nil {
			t.Fatal(err)
		}
		var granted []string
		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, "certificates.k8s.io") {
				granted = append(granted, fmt.Sprint(rule.Resources, rule.ResourceNames, rule.Verbs))
			}
		}
		want := []string{"[certificatesigningrequests] [] [list watch]",
			"[certificatesigningrequests/approval] [] [update]",
			"[signers] [kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving] [approve]"}
		if on && !slices.Equal(granted, want) || !on && granted != nil {
			t.Errorf("with the option %t: %q", on, granted)
		}
		set := given()
		set["guest.approveKubeletCSRs"] = on
		if passed := strings.Contains(string(render(t, charts.Operator, set)["Deployment/joiner-operator"]),
			"--approve-kubelet-csrs"); passed != on {
			t.Errorf("with the option %t the flag is passed: %t", on, passed)
		}
	}
}

func TestTheChartsHoldTheGeneratedDefinitions(t *testing.T) {
	t.Parallel()
	for chart, generated := range map[string]func() (map[string][]byte, error){charts.Operator: crd.Management,
		charts.Guest: crd.Guest} {
		want, err := generated()
		if err != nil || len(want) == 0 {
			t.Fatalf("no definitions: %v", err)
		}
		documents := render(t, chart, union(map[string]any{"crds.install": true}, chart))
		for name, content := range want {
			if !bytes.Equal(file(t, chart+"/files/"+name), content) {
				t.Errorf("%s has another %s than api/crd: copy it (make generate does)", chart, name)
			}
			resource, group, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "_")
			if documents["CustomResourceDefinition/"+group+"."+resource] == nil {
				t.Errorf("%s does not install %s; it makes %v", chart, name, slices.Sorted(maps.Keys(documents)))
			}
		}
	}
}

func union(set map[string]any, chart string) map[string]any {
	if chart == charts.Operator {
		maps.Copy(set, given())
	}
	return set
}

func TestTheDeploymentPassesTheValuesOn(t *testing.T) {
	t.Parallel()
	set := given()
	set["platforms"], set["aws.resourceTags"] = []any{"AWS", "KWOK"}, map[string]any{"owner": "sre"}
	set["userData.releaseVersion"], set["protection.foreignObjects"] = "4.21.0", "Report"
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(render(t, charts.Operator, set)["Deployment/joiner-operator"],
		&deployment); err != nil {
		t.Fatal(err)
	}
	args := deployment.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{
		"--namespace=hcp-a", "--guest-kubeconfig=/etc/guest/kubeconfig",
		"--guest-user-name=system:hosted-cluster-config", "--platform=AWS,KWOK",
		"--own=Full", "--infra-id=infra", "--instance-profile=nodes", "--resource-tags=owner=sre",
		"--userdata-file=/etc/userdata/value", "--ami-ids=ami-1", "--release-version=4.21.0",
		"--foreign-objects=Report", "--default-root-volume-size=75Gi",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("the arguments %q lack %s", args, want)
		}
	}
}

// Every value has a line in the schema, and every line a value. So Helm refuses misspelt ones.
func TestTheSchemasKnowTheValues(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		var values, schema map[string]any
		if err := yaml.Unmarshal(file(t, chart+"/values.yaml"), &values); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(file(t, chart+"/values.schema.json"), &schema); err != nil {
			t.Fatal(err)
		}
		compare(t, chart, values, schema)
	}
}

func compare(t *testing.T, where string, values, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		return // free keys
	}
	for name := range properties {
		if _, found := values[name]; !found && name != "global" {
			t.Errorf("%s: the schema has %s, the values have not", where, name)
		}
	}
	for name, value := range values {
		inner, found := properties[name].(map[string]any)
		if !found {
			t.Errorf("%s: the values have %s, the schema has not", where, name)
			continue
		}
		if object, is := value.(map[string]any); is {
			compare(t, where+"."+name, object, inner)
		}
	}
}
