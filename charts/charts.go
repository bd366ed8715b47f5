// Package charts holds the Helm charts of joiner, joiner-operator and joiner-webhook, and of their CRDs. It also
// returns the rights that they grant, for those who install without Helm.
package charts

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// The charts.
const (
	// Joiner is the chart of the controller. Its rights are those of package deploy.
	Joiner = "joiner"
	// Operator is the chart for the namespace of a hosted control plane, in the management cluster.
	Operator = "joiner-operator"
	// Guest is the chart for the hosted cluster.
	Guest = "joiner-operator-guest"
	// Webhook is the chart of the protection of control plane nodes.
	Webhook = "joiner-webhook"
	// CRDs is the chart of the definitions. The others have them in their folders crds, but Helm never updates those
	// (U-11).
	CRDs = "joiner-crds"
)

//go:embed all:joiner joiner-crds joiner-operator joiner-operator-guest joiner-webhook
var files embed.FS

// Files returns the charts, each in a folder of its name.
func Files() embed.FS { return files }

// ManagementRules returns the rules of the Role in the management cluster, a list in YAML: exactly those of R41.
func ManagementRules() ([]byte, error) { return files.ReadFile(Operator + "/rules/policy.yaml") }

// Alongside returns the parts of a hosted cluster that joiner-operator owns beside an operator of HyperShift's.
func Alongside() []string {
	return []string{"NodePools", "Admission/nodepools", "Admission/nodeclaims"}
}

// Full returns all parts of a hosted cluster that joiner-operator may own.
func Full() []string {
	return []string{"NodePools", "EC2NodeClasses", "Admission/nodepools", "Admission/ec2nodeclasses",
		"Admission/nodeclaims", "DefaultClass"}
}

// HostedRules returns the rules that --infra-from=HostedControlPlane adds to those of the Role in the management
// cluster.
func HostedRules() ([]byte, error) {
	return files.ReadFile(Operator + "/rules/hostedcontrolplane.yaml")
}

// GuestRules returns the rules of the ClusterRole in the hosted cluster for an operator that owns these parts of it, a
// list in YAML.
func GuestRules(own ...string) ([]byte, error) {
	rules, err := files.ReadFile(Guest + "/rules/guest.yaml")
	for _, part := range own {
		if err != nil {
			return nil, err
		}
		var further []byte
		further, err = files.ReadFile(Guest + "/rules/own/" + strings.ToLower(part) + ".yaml")
		rules = append(rules, further...)
	}
	return rules, err
}

// ApprovalRules returns the rules that --approve-kubelet-csrs adds to GuestRules, a list in YAML.
func ApprovalRules() ([]byte, error) { return files.ReadFile(Guest + "/rules/kubelet-csrs.yaml") }

// WebhookCertificateRules returns the rules, lists in YAML, that joiner-webhook needs for certificates of its own:
// those of a Role in its namespace, and those of a ClusterRole.
func WebhookCertificateRules() (role, clusterRole []byte, err error) {
	if role, err = files.ReadFile(Webhook + "/rules/certificates.yaml"); err != nil {
		return nil, nil, err
	}
	clusterRole, err = files.ReadFile(Webhook + "/rules/trust.yaml")
	return role, clusterRole, err
}

// WebhookConditions returns the matchConditions of the webhook that judges pods and bindings, a list in YAML.
func WebhookConditions() ([]byte, error) { return files.ReadFile(Webhook + "/rules/conditions.yaml") }

// Alerts returns the groups of alerts of a chart for a release in a namespace, in YAML: the spec of its
// PrometheusRule, with the thresholds that the chart's values have.
func Alerts(chart, namespace string) ([]byte, error) {
	content, err := files.ReadFile(chart + "/rules/alerts.yaml")
	if err != nil {
		return nil, err
	}
	given, err := files.ReadFile(chart + "/values.yaml")
	if err != nil {
		return nil, err
	}
	var values struct {
		Alerts struct{ Thresholds map[string]any }
	}
	if err := yaml.Unmarshal(given, &values); err != nil {
		return nil, err
	}
	for name, value := range values.Alerts.Thresholds {
		content = bytes.ReplaceAll(content, fmt.Appendf(nil, "${%s}", name), fmt.Append(nil, value))
	}
	return bytes.ReplaceAll(content, []byte("$NAMESPACE"), []byte(namespace)), nil
}

// AutomaticPolicies returns the MutatingAdmissionPolicies of the chart, with their bindings, in YAML. They are for a
// release in a namespace, and for a policy as it is in a file, whose emergencyOverride is Automatic. Without a
// namespace they are for the pods of every namespace.
func AutomaticPolicies(namespace string, policy map[string]any) ([]byte, error) {
	return webhookTemplate("automatic.yaml", map[string]any{
		"Files": webhookFiles{}, "Release": map[string]any{"Namespace": namespace},
		"Values":       map[string]any{"policy": policy},
		"Capabilities": map[string]any{"APIVersions": everything{}},
	})
}

// everything says that a cluster serves every kind: no cluster is asked.
type everything struct{}

// Has is .Capabilities.APIVersions.Has of Helm.
func (everything) Has(string) bool { return true }

// webhookTemplate executes a template of the chart of the webhook.
func webhookTemplate(file string, data map[string]any) ([]byte, error) {
	parsed, err := template.New(file).Funcs(Functions()).Option("missingkey=error").ParseFS(files,
		Webhook+"/templates/"+file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, data)
	return out.Bytes(), err
}

// webhookFiles are the files of the chart, as Helm shows them to its templates.
type webhookFiles struct{}

// Get returns the content of a file.
func (webhookFiles) Get(name string) (string, error) {
	content, err := files.ReadFile(Webhook + "/" + name)
	return string(content), err
}

// WebhookConfiguration returns the ValidatingWebhookConfiguration of the chart, in YAML, for a release in a namespace
// whose policy has this emergencyOverride. It has no caBundle.
func WebhookConfiguration(namespace, override string) ([]byte, error) {
	return webhookTemplate("configuration.yaml", map[string]any{
		"Files":   webhookFiles{},
		"Release": map[string]any{"Namespace": namespace},
		"Values": map[string]any{
			"failurePolicy": "Fail", "certificates": map[string]any{"secret": ""}, "authentication": map[string]any{
				"mode": "Path",
			}, "policy": map[string]any{"emergencyOverride": override},
		},
	})
}
