package takeover

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Input is a cluster on which Karpenter runs, or ran.
type Input struct {
	// Documents are its objects: those of Resources, and those from which World was made.
	Documents []whatif.Document
	// World is the same cluster for planning.
	World *whatif.World
	// Theirs is what Karpenter was started with, and Ours what Joiner would be started with. Either may be unknown.
	Theirs, Ours Given
	// Refused are the keys of the values file that our chart does not accept.
	Refused []string
	Now     time.Time
}

// Row is a row of the table of K-25.
type Row struct {
	// Name is in findings, and About in the documentation.
	Name, About string
	// Worst is the severity of its findings; a finding without consequences may have a lower one.
	Worst Severity
	find  func(*picture) []Finding
}

// Checks returns the table of K-25, in its order.
func Checks() []Row {
	return []Row{
		{"node-limits", "NodePools above their soft `limits.nodes`, and `limits.nodes: 0` used as a pause", Danger,
			nodeLimits},
		{"dormant", "NodeOverlays, CapacityBuffers and static NodePools whose feature gate is off in Karpenter",
			Danger, dormant},
		{"devices", "pods with ResourceClaims, and `IGNORE_DRA_REQUESTS=false`", Danger, devices},
		{"node-class", "NodePools of a provider that Joiner does not have", Danger, nodeClasses},
		{"in-flight", "drains, commands and reboots under way", Wait, inFlight},
		{"definitions", "definitions that Helm would delete, that are older or newer, or that store v1beta1", Danger,
			definitions},
		{"settings", "flags, variables, gates and values of Karpenter's, as Joiner takes them", Danger, settingsGiven},
		{"overlays", "NodeOverlays that have an effect in Karpenter and none here", Warning, overlays},
		{"begin", "drift and expiration that would begin at once", Warning, begins},
		{"consolidation", "moves of NodePools with `consolidateAfter: 0s`", Info, consolidation},
		{"repair", "node repair, and the budgets that bind it", Warning, repair},
		{"protected", "PodDisruptionBudgets that never allow anything, and do-not-disrupt", Info, protected},
		{"metrics", "metrics in PrometheusRules and dashboards that Joiner does not serve", Warning, metrics},
		{"rights", "policies and rights that name Karpenter's service account or labels", Warning, rights},
	}
}

// Resources returns what has to be read in addition to what planning needs. Resources that the cluster lacks are left
// out.
func Resources() []whatif.Resource {
	of := func(group, version, name string) whatif.Resource {
		return whatif.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version,
			Resource: name}}
	}
	return []whatif.Resource{
		of("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
		of("apps", "v1", "deployments"),
		of("monitoring.coreos.com", "v1", "prometheusrules"),
		of("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
		of("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
		of("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
		of("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		of("rbac.authorization.k8s.io", "v1", "rolebindings"),
		of("networking.k8s.io", "v1", "networkpolicies"),
	}
}

// DashboardLabel is the label of ConfigMaps with dashboards; other ConfigMaps are not read.
const DashboardLabel = "grafana_dashboard"

// picture is a decoded input.
type picture struct {
	Input
	pools    []*karpenterv1.NodePool
	claims   []*karpenterv1.NodeClaim
	nodes    []*corev1.Node
	pods     []*corev1.Pod
	budgets  []*policyv1.PodDisruptionBudget
	overlays []*karpenterv1alpha1.NodeOverlay
	// others are the undecoded objects, by kind.
	others   map[string][]unstructured.Unstructured
	snapshot *cluster.Snapshot
	terms    engine.Terms
	foretold func() (whatif.Comparison, error)
	err      error
}

// Check runs the checks of K-25. It fails if no plan can be made.
func Check(in Input) ([]Finding, error) {
	return through(Checks(), in)
}

// through runs the checks of a table.
func through(rows []Row, in Input) ([]Finding, error) {
	p, err := understood(in)
	if err != nil {
		return nil, err
	}
	findings := []Finding{}
	for _, row := range rows {
		for _, f := range row.find(p) {
			f.Check = row.Name
			findings = append(findings, f)
		}
	}
	return sorted(findings), p.err
}

// understood decodes objects and sorts them by kind.
func understood(in Input) (*picture, error) {
	p := &picture{Input: in, others: map[string][]unstructured.Unstructured{}}
	for _, d := range in.Documents {
		o := unstructured.Unstructured{Object: d.Content}
		var err error
		switch kind := o.GroupVersionKind(); kind.GroupKind().String() {
		case "NodePool." + karpenterv1.Group:
			p.pools, err = decoded(p.pools, d)
		case "NodeClaim." + karpenterv1.Group:
			p.claims, err = decoded(p.claims, d)
		case "NodeOverlay." + karpenterv1.Group:
			p.overlays, err = decoded(p.overlays, d)
		case "Node":
			p.nodes, err = decoded(p.nodes, d)
		case "Pod":
			p.pods, err = decoded(p.pods, d)
		case "PodDisruptionBudget.policy":
			p.budgets, err = decoded(p.budgets, d)
		}
		if err != nil {
			return nil, err
		}
		p.others[o.GetKind()] = append(p.others[o.GetKind()], o)
	}
	if in.World == nil {
		return p, nil
	}
	// An unreadable budget counts as 0, as everywhere.
	p.snapshot, p.terms, _ = in.World.Picture()
	var once *whatif.Comparison
	p.foretold = func() (whatif.Comparison, error) {
		if once == nil {
			c, err := in.World.Compare(whatif.Change{}, whatif.UntilQuiet)
			if err != nil {
				return c, fmt.Errorf("foretelling what Joiner would do: %w", err)
			}
			once = &c
		}
		return *once, nil
	}
	return p, nil
}

func decoded[T any](list []*T, d whatif.Document) ([]*T, error) {
	one := new(T)
	data, err := json.Marshal(d.Content)
	if err == nil {
		err = json.Unmarshal(data, one)
	}
	if err != nil {
		o := unstructured.Unstructured{Object: d.Content}
		return list, fmt.Errorf("%s: %s %s: %w", d.Where, o.GetKind(), o.GetName(), err)
	}
	return append(list, one), nil
}

// theirGates returns Karpenter's feature gates as it runs, or its defaults if those are not known.
func (p *picture) theirGates() map[string]bool {
	return gatesWith(p.Theirs, true)
}
