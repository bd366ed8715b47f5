// Package charts holds the Helm charts of joiner-operator, and the rights that they grant for whoever installs without Helm.
package charts

import "embed"

// The charts.
const (
	// Operator is the chart for the namespace of a hosted control plane, in the management cluster.
	Operator = "joiner-operator"
	// Guest is the chart for the hosted cluster.
	Guest = "joiner-operator-guest"
)

//go:embed joiner-operator joiner-operator-guest
var files embed.FS

// Files returns the charts, each in a folder of its name.
func Files() embed.FS { return files }

// ManagementRules returns the rules of the Role in the management cluster, a list in YAML: exactly those of R41.
func ManagementRules() ([]byte, error) { return files.ReadFile(Operator + "/rules/policy.yaml") }

// GuestRules returns the rules of the ClusterRole in the hosted cluster, a list in YAML.
func GuestRules() ([]byte, error) { return files.ReadFile(Guest + "/rules/guest.yaml") }

// ApprovalRules returns the rules that --approve-kubelet-csrs adds to those, a list in YAML.
func ApprovalRules() ([]byte, error) { return files.ReadFile(Guest + "/rules/kubelet-csrs.yaml") }
