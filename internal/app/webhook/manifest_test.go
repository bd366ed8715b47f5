package webhook

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

// The manifest is the chart's configuration, with a URL and a name that kube-apiserver accepts in files. It follows
// the policy and the flags. Wrong flags are named.
func TestTheManifestForFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "abcdefghijklmnopqrstuvwxyz0123456789"
	token := file("token", secret+"\n"+strings.ToUpper(secret)+"\n")
	const policy = "apiVersion: scheduling.openshift.io/v1alpha1\nkind: NodeSchedulingPolicyConfig\ngroups: []\n"
	ca, url := file("ca.crt", string(authority)), "https://127.0.0.1:8443/node-scheduling"
	printed := func(policy, namespace string) (object admissionv1.ValidatingWebhookConfiguration) {
		t.Helper()
		config, out := DefaultConfig(), bytes.Buffer{}
		config.PolicyFile, config.Namespace, config.PathTokenFile = file("policy.yaml", policy), namespace, token
		if err := (Manifest{PrintManifestURL: url, PrintManifestCAFile: ca}).Print(config, &out); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(out.Bytes(), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	object := printed(policy, "")
	first := object.Webhooks[0]
	if object.Name != "node-scheduling-policy.static.k8s.io" || len(object.Webhooks) != 3 ||
		*first.FailurePolicy != admissionv1.Fail || len(first.Rules) != 2 || first.NamespaceSelector != nil {
		t.Errorf("the manifest is %+v", object)
	}
	for _, w := range object.Webhooks {
		if w.ClientConfig.Service != nil || *w.ClientConfig.URL != url+"/"+secret ||
			!bytes.Equal(w.ClientConfig.CABundle, authority) {
			t.Errorf("%s calls %+v", w.Name, w.ClientConfig)
		}
	}
	overriding := printed(policy+"emergencyOverride: Enable\n", "guard")
	if w := overriding.Webhooks[0]; len(overriding.Webhooks) != 4 || len(w.Rules) != 3 ||
		w.NamespaceSelector.MatchExpressions[0].Values[0] != "guard" {
		t.Errorf("with the override and a namespace it is %+v", w)
	}
	config := DefaultConfig()
	config.PolicyFile, config.PathTokenFile = file("policy.yaml", policy), file("short", "x")
	err = Manifest{PrintManifestURL: url, PrintManifestCAFile: ca}.Print(config, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "--path-token-file") ||
		!strings.Contains(err.Error(), "line 1 is no token") {
		t.Errorf("error %v, want what is wrong with the token", err)
	}
	err = Manifest{PrintManifestURL: "http://x", PrintManifestCAFile: config.PolicyFile}.Print(config, &bytes.Buffer{})
	for _, want := range []string{`--print-manifest-url is "http://x"`, "--print-manifest-ca-file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// what a policy with Automatic needs is printed for every group of the file. Without a namespace, that covers
// the pods of all namespaces. Any other policy is refused by its field.
func TestA42_ThePoliciesForAutomaticArePrinted(t *testing.T) {
	t.Parallel()
	const policy = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- {name: ControlPlane, labelSelector: {matchLabels: {cp: ""}}, authorizedUsers: [system:admin, "say \"<ENTRIES>\""]}
- {name: Infra, labelSelector: {matchExpressions: [{key: infra, operator: Exists}]}, authorizedUsers: []}
`
	printed := func(override, namespace string) (string, error) {
		t.Helper()
		config, out := DefaultConfig(), bytes.Buffer{}
		config.PolicyFile, config.Namespace = filepath.Join(t.TempDir(), "policy.yaml"), namespace
		if err := os.WriteFile(config.PolicyFile, []byte(policy+override), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Manifest{PrintAutomaticPolicies: true}.PrintAutomatic(config, &out)
		return out.String(), err
	}
	for _, namespace := range []string{"", "guard"} {
		text, err := printed("emergencyOverride: Automatic", namespace)
		if err != nil {
			t.Fatal(err)
		}
		documents := strings.Split(strings.TrimPrefix(text, "---\n"), "\n---\n")
		if len(documents) != 4 {
			t.Fatalf("%d documents:\n%s", len(documents), text)
		}
		var first admissionv1.MutatingAdmissionPolicy
		var binding admissionv1.MutatingAdmissionPolicyBinding
		for document, into := range map[string]any{documents[0]: &first, documents[3]: &binding} {
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
		}
		exempt := first.Spec.MatchConstraints.NamespaceSelector
		if (exempt == nil) != (namespace == "") || exempt != nil &&
			exempt.MatchExpressions[0].Values[0] != namespace || *first.Spec.FailurePolicy != admissionv1.Ignore {
			t.Errorf("for namespace %q: %+v", namespace, first.Spec)
		}
		if got := first.Spec.MatchConditions[2].Expression; !strings.Contains(got,
			`[["system:admin","say \"\u003cENTRIES\u003e\""],[]].all(`) {
			t.Errorf("the people are %s", got)
		}
		if binding.Spec.PolicyName != "node-scheduling-policy-automatic-1" ||
			binding.Spec.ParamRef.Selector.MatchExpressions[0].Key != "infra" {
			t.Errorf("the second binding is %+v", binding.Spec)
		}
	}
	if _, err := printed("emergencyOverride: Enable", ""); err == nil || !strings.Contains(err.Error(),
		`emergencyOverride of --policy-file is "Enable": want Automatic`) {
		t.Errorf("error %v", err)
	}
	if _, err := printed("emergencyOverride: Auto", ""); err == nil || !strings.Contains(err.Error(),
		`emergencyOverride is "Auto": it must be Disable, Enable or Automatic`) {
		t.Errorf("error %v", err)
	}
}
