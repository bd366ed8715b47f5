package charts_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// protected renders the chart of the webhook with its values, changed by set, and returns the object of a kind and
// name.
func protected[T any](t *testing.T, set map[string]any, object string) (found T) {
	t.Helper()
	values := map[string]any{"image": "joiner-webhook:1"}
	maps.Copy(values, set)
	documents := render(t, charts.Webhook, values)
	if documents[object] == nil {
		t.Fatalf("no %s among %v", object, slices.Sorted(maps.Keys(documents)))
	}
	if err := yaml.UnmarshalStrict(documents[object], &found); err != nil {
		t.Fatalf("%s: %v\n%s", object, err, documents[object])
	}
	return found
}

// page returns the block of the user's page that starts with a kind, or with a text.
func page[T any](t *testing.T, kind string, begins ...string) (found T) {
	t.Helper()
	content, err := os.ReadFile("../docs/control-plane-protection.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(content), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		document, _, _ := strings.Cut(block, "\n---\n")
		if (len(begins) > 0 && strings.HasPrefix(document, begins[0]) ||
			strings.Contains(document, "\nkind: "+kind+"\n")) && !strings.Contains(document,
			"control-plane-placement") {
			if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(document, "caBundle: ...", "")),
				&found); err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("the page has no %s", kind)
	return found
}

// token is a path that somebody chose.
const token = "abcdefghijklmnopqrstuvwxyz0123456789"

const guard = "ValidatingWebhookConfiguration/node-scheduling-policy"

// the configuration is that of the user's page, which localcluster/e2e/protection tests on a real API server.
// The webhook's own namespace is exempt, and the failure policy is the requested one.
func TestTheWebhooksConfigurationIsThatOfThePage(t *testing.T) {
	t.Parallel()
	want := page[admissionv1.ValidatingWebhookConfiguration](t, "ValidatingWebhookConfiguration")
	for i := range want.Webhooks { // the release is in another namespace
		want.Webhooks[i].ClientConfig.Service.Namespace = "hcp-a"
	}
	want.Webhooks[0].NamespaceSelector.MatchExpressions[0].Values = []string{"hcp-a"}
	if got := protected[admissionv1.ValidatingWebhookConfiguration](t, nil, guard); !reflect.DeepEqual(got, want) {
		t.Errorf("the chart has\n%+v\nthe page\n%+v", got, want)
	}
	set := map[string]any{"failurePolicy": "Ignore", "policy.emergencyOverride": "Enable",
		"certificates.secret": "mine", "certificates.caBundle": "eA==", "authentication.path": token}
	got := protected[admissionv1.ValidatingWebhookConfiguration](t, set, guard).Webhooks[0]
	if *got.FailurePolicy != admissionv1.Ignore || string(got.ClientConfig.CABundle) != "x" || len(got.Rules) != 3 ||
		!slices.Equal(got.Rules[2].Resources, []string{"pods/status", "pods/ephemeralcontainers", "pods/resize"}) {
		t.Errorf("with %v it is %+v", set, got)
	}
	connections := page[[]admissionv1.ValidatingWebhook](t, "", "- name: connections.")
	connections[0].ClientConfig.Service.Namespace, connections[0].NamespaceSelector.MatchExpressions[0].Values =
		"hcp-a", []string{"hcp-a"}
	if got := protected[admissionv1.ValidatingWebhookConfiguration](t,
		map[string]any{"policy.emergencyOverride": "Enable"}, guard).Webhooks; len(got) != 4 ||
		!reflect.DeepEqual(got[3], connections[0]) {
		t.Errorf("for connections the chart has\n%+v\nthe page\n%+v", got, connections)
	}
}

// the rights are those of the user's page. For certificates of its own it gets one Secret and one configuration
// by name.
func TestTheWebhooksRightsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	rules := page[rbacv1.ClusterRole](t, "ClusterRole").Rules
	trust := rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"},
		Resources:     []string{"validatingwebhookconfigurations"},
		ResourceNames: []string{"node-scheduling-policy"}, Verbs: []string{"get", "update"}}
	for _, c := range []struct {
		set  map[string]any
		want []rbacv1.PolicyRule
	}{
		{nil, slices.Concat(rules[:7], []rbacv1.PolicyRule{trust})},
		{map[string]any{"certificates.secret": "mine", "certificates.caBundle": "eA==", "authentication.path": token},
			rules[:7]},
		{map[string]any{"policy.emergencyOverride": "Enable", "policy.authorization": "ListsAndRBAC"},
			slices.Concat(rules, []rbacv1.PolicyRule{trust})},
	} {
		if got := protected[rbacv1.ClusterRole](t, c.set, "ClusterRole/joiner-webhook").Rules; !reflect.DeepEqual(got,
			c.want) {
			t.Errorf("with %v the ClusterRole has %v, want %v", c.set, got, c.want)
		}
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{"joiner-webhook-certificates"}, Verbs: []string{"get", "update"}},
	}
	if got := protected[rbacv1.Role](t, nil, "Role/joiner-webhook"); !reflect.DeepEqual(got.Rules, want) ||
		got.Namespace != "hcp-a" {
		t.Errorf("the Role in namespace %s has %v", got.Namespace, got.Rules)
	}
	if documents := render(t, charts.Webhook, map[string]any{"image": "i", "certificates.secret": "mine",
		"certificates.caBundle": "eA==", "authentication.path": token}); documents["Role/joiner-webhook"] != nil {
		t.Error("with a Secret of somebody else there is a Role for Secrets")
	}
}

// two pods run as nobody on a read-only file system, with the requested certificates, and a policy that
// the webhook can read.
func TestTheWebhooksDeployment(t *testing.T) {
	t.Parallel()
	deployment := protected[appsv1.Deployment](t, nil, "Deployment/joiner-webhook")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if *deployment.Spec.Replicas != 2 || !*pod.SecurityContext.RunAsNonRoot ||
		!*container.SecurityContext.ReadOnlyRootFilesystem || *container.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("the Deployment is %+v", deployment.Spec)
	}
	for _, want := range []string{"--namespace=hcp-a", "--cert-secret-name=joiner-webhook-certificates",
		"--service-name=joiner-webhook", "--webhook-configuration-name=node-scheduling-policy",
		"--cert-lifetime=2160h"} {
		if !slices.Contains(container.Args, want) {
			t.Errorf("the arguments %q lack %s", container.Args, want)
		}
	}
	// Without the node's network, a cluster of only new nodes waits for its network, and the network waits for this
	// webhook (spec, webhook door).
	tolerated := func(pod corev1.PodSpec) bool {
		return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == corev1.TaintNodeNotReady
		})
	}
	if !pod.HostNetwork || !tolerated(pod) || deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntVal != 0 ||
		deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal != 1 {
		t.Errorf("on the network of the nodes the Deployment is %+v", deployment.Spec)
	}
	apart := protected[appsv1.Deployment](t, map[string]any{"hostNetwork": false, "ports.https": 9443},
		"Deployment/joiner-webhook").Spec
	if own := apart.Template.Spec; own.HostNetwork || tolerated(own) ||
		apart.Strategy.RollingUpdate.MaxUnavailable.IntVal != 0 ||
		!slices.Contains(own.Containers[0].Args, "--bind-address=:9443") ||
		own.Containers[0].Ports[0].ContainerPort != 9443 {
		t.Errorf("on a network of its own the Deployment is %+v", apart)
	}
	given := protected[appsv1.Deployment](t, map[string]any{"certificates.secret": "mine",
		"certificates.caBundle": "eA==", "authentication.path": token}, "Deployment/joiner-webhook").Spec.Template.Spec
	if args := given.Containers[0].Args; !slices.Contains(args, "--tls-cert-file=/etc/certificates/tls.crt") ||
		slices.Contains(args, "--service-name=joiner-webhook") || given.Volumes[1].Secret.SecretName != "mine" {
		t.Errorf("with a Secret of somebody else the pod has %q and %v", args, given.Volumes)
	}
	checkCallers(t, container.Args)
	if at := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "MEMORY_LIMIT" }); at < 0 ||
		container.Env[at].ValueFrom.ResourceFieldRef.Resource != "limits.memory" ||
		container.Env[at].ValueFrom.ResourceFieldRef.ContainerName != container.Name {
		t.Errorf("the environment %+v does not say the container's memory limit", container.Env)
	}
	service := protected[corev1.Service](t, nil, "Service/joiner-webhook")
	if service.Spec.Ports[0].Port != 443 || service.Spec.Ports[0].TargetPort.StrVal != container.Ports[0].Name ||
		!reflect.DeepEqual(service.Spec.Selector, deployment.Spec.Template.Labels) {
		t.Errorf("the Service is %+v", service.Spec)
	}
	policy, err :=
		evaluator.Decode(
			[]byte(protected[corev1.ConfigMap](t, nil, "ConfigMap/joiner-webhook-policy").Data["policy.yaml"]))
	if err != nil || len(policy.Groups) != 1 || policy.Groups[0].Mode != "Inform" {
		t.Errorf("the policy is %+v, %v", policy, err)
	}
}

// With the network of the nodes, the API server still reaches the webhook by its ClusterIP, for which there may be no
// proxy yet. Who installs the chart reads under which condition that is so.
func TestTheNotesSayHowTheAPIServerReachesTheWebhook(t *testing.T) {
	t.Parallel()
	own := template.FuncMap{"toString": fmt.Sprint} // of Helm's functions, the one that only notes use
	notes := template.Must(template.New("").Funcs(charts.Functions()).Funcs(own).Parse(
		string(file(t, charts.Webhook+"/templates/NOTES.txt"))))
	for hostNetwork, want := range map[bool]int{true: 1, false: 0} {
		values := map[string]any{}
		if err := yaml.Unmarshal(file(t, charts.Webhook+"/values.yaml"), &values); err != nil {
			t.Fatal(err)
		}
		values["hostNetwork"] = hostNetwork
		var text strings.Builder
		if err := notes.Execute(&text, map[string]any{"Values": values, "Release": map[string]any{
			"Namespace": "joiner-webhook"}}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "--enable-aggregator-routing=true"); got != want {
			t.Errorf("with hostNetwork %t the notes name the flag %d times, want %d:\n%s", hostNetwork, got, want,
				&text)
		}
	}
}

// checkCallers checks who may call. With its own certificates the webhook keeps the path; with others the chart
// has it. A certificate of the API server needs its authority and names. There is no other mode.
func checkCallers(t *testing.T, own []string) {
	t.Helper()
	path := func(set map[string]any) string {
		service := protected[admissionv1.ValidatingWebhookConfiguration](t, set,
			guard).Webhooks[0].ClientConfig.Service
		if service.Path == nil {
			return ""
		}
		return *service.Path
	}
	if at := path(nil); at != "" || !slices.Contains(own, "--authentication=Path") {
		t.Errorf("with certificates of its own the path is %q, the arguments %q", at, own)
	}
	set := map[string]any{"certificates.secret": "mine", "certificates.caBundle": "eA==", "authentication.path": token}
	secret := protected[corev1.Secret](t, set, "Secret/joiner-webhook-path")
	pod := protected[appsv1.Deployment](t, set, "Deployment/joiner-webhook").Spec.Template.Spec
	if at := path(set); at != "/node-scheduling/"+token || secret.StringData["path"] != token ||
		!slices.Contains(pod.Containers[0].Args, "--path-token-file=/etc/path/path") ||
		pod.Volumes[2].Secret.SecretName != secret.Name {
		t.Errorf("with certificates of somebody else the path is %q, the Secret %v, the pod %+v", at,
			secret.StringData, pod)
	}
	set = map[string]any{"authentication.mode": "ClientCertificate", "authentication.clientCA.configMap": "front",
		"authentication.clientNames": []any{"a", "b"}}
	pod = protected[appsv1.Deployment](t, set, "Deployment/joiner-webhook").Spec.Template.Spec
	args := pod.Containers[0].Args
	if at := path(set); at != "/node-scheduling" || pod.Volumes[1].ConfigMap.Name != "front" ||
		!slices.Contains(args, "--client-ca-file=/etc/client-ca/ca.crt") ||
		!slices.Contains(args, "--client-names=a,b") {
		t.Errorf("with client certificates the path is %q, the pod %+v", at, pod)
	}
	schema, err := charts.Files().ReadFile(charts.Webhook + "/values.schema.json")
	if err != nil || !strings.Contains(string(schema), `"mode": {"enum": ["Path", "ClientCertificate"]}`) {
		t.Errorf("the schema takes other modes (%v)", err)
	}
}

// the chart brings the definition of Joiner's own kind, with the rights to read it. It writes none of
// OpenShift's kinds.
func TestA18_TheChartBringsItsOwnKindOnly(t *testing.T) {
	t.Parallel()
	wanted, err := crd.NodeScheduling()
	if err != nil {
		t.Fatal(err)
	}
	found, err := fs.Glob(charts.Files(), charts.Webhook+"/crds/*")
	if err != nil || len(found) != len(wanted) {
		t.Fatalf("the chart has %v (%v), want the files of %v", found, err, slices.Sorted(maps.Keys(wanted)))
	}
	for _, name := range found {
		content, err := fs.ReadFile(charts.Files(), name)
		if err != nil || !bytes.Equal(content, wanted[path.Base(name)]) {
			t.Errorf("%s is not that of api/crd/nodescheduling (%v)", name, err)
		}
	}
	for _, rule := range protected[rbacv1.ClusterRole](t, nil, "ClusterRole/joiner-webhook").Rules {
		for _, group := range []string{"config.openshift.io", "scheduling.joiner.sh", "apiextensions.k8s.io"} {
			if slices.Contains(rule.APIGroups, group) && !slices.Equal(rule.Verbs, []string{"get"}) &&
				!slices.Equal(rule.Verbs, []string{"list"}) {
				t.Errorf("the webhook may %v %v", rule.Verbs, rule.Resources)
			}
		}
	}
}

// with Automatic the chart has what Enable has, and the policies that write the annotation, as joiner-webhook
// prints them. Without a cluster, or with one that does not serve such policies, a message says so.
func TestA42_TheChartHasThePoliciesForAutomatic(t *testing.T) {
	t.Parallel()
	const kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	set := map[string]any{"image": "i", "policy.emergencyOverride": "Automatic"}
	automatic := renderWhere(t, charts.Webhook, set, apiVersions{kind})
	enabled := render(t, charts.Webhook, map[string]any{"image": "i", "policy.emergencyOverride": "Enable"})
	for _, same := range []string{guard, "ClusterRole/joiner-webhook"} {
		if string(automatic[same]) != string(enabled[same]) {
			t.Errorf("%s differs from that of Enable:\n%s", same, automatic[same])
		}
	}
	const name = "node-scheduling-policy-automatic-0"
	var policy admissionv1.MutatingAdmissionPolicy
	var binding admissionv1.MutatingAdmissionPolicyBinding
	for object, into := range map[string]any{"MutatingAdmissionPolicy/" + name: &policy,
		"MutatingAdmissionPolicyBinding/" + name: &binding} {
		if enabled[object] != nil {
			t.Errorf("with Enable there is a %s", object)
		}
		if err := yaml.UnmarshalStrict(automatic[object], into); err != nil {
			t.Fatalf("%s: %v\n%s", object, err, automatic[object])
		}
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(file(t, charts.Webhook+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	in := values["policy"].(map[string]any)
	in["emergencyOverride"] = "Automatic"
	printed, err := charts.AutomaticPolicies("hcp-a", in)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(string(printed), "\n---\n"), "\n---")
	var same admissionv1.MutatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(first), &same); err != nil || !reflect.DeepEqual(same, policy) {
		t.Errorf("printed is (%v)\n%+v\nthe chart has\n%+v", err, same, policy)
	}
	if binding.Spec.PolicyName != policy.Name ||
		policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values[0] != "hcp-a" ||
		len(policy.Spec.MatchConditions) != 5 {
		t.Errorf("the policy is %+v, its binding %+v", policy, binding)
	}
	text := string(file(t, charts.Webhook+"/templates/automatic.yaml"))
	parsed := template.Must(template.New("").Funcs(charts.Functions()).Parse(text))
	err = parsed.Execute(io.Discard, map[string]any{"Values": map[string]any{"policy": in},
		"Capabilities": map[string]any{"APIVersions": apiVersions{}}})
	if err == nil || !strings.Contains(err.Error(), "policy.emergencyOverride: Automatic needs "+kind) {
		t.Errorf("where it is not served: %v", err)
	}
}
