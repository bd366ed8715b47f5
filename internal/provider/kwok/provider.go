package kwok

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// UnhealthyCondition is a node condition for trials of node repair: set it to True on a node by hand.
const UnhealthyCondition corev1.NodeConditionType = "KWOKUnhealthy"

// RebootCondition is a node condition for trials of reboots: set it to True on a node by hand. A reboot cures it.
const RebootCondition corev1.NodeConditionType = "KWOKRebootRequired"

// Config configures a Provider.
type Config struct {
	Cluster   Cluster
	Inventory Inventory
	// Now is the clock; it decides when a booting machine is due.
	Now func() time.Time
	// Correct returns the catalogue for a claim, with the corrections of users (NodeOverlay): what planning found
	// cheapest must be cheapest here too. Nil means unchanged.
	Correct func(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog
	// Faults apply to all node classes, beside the own faults of each.
	Faults Faults
}

// Provider launches simulated machines. It only remembers shortages, acknowledged notices, and recently ended
// machines. It is safe for concurrent use.
type Provider struct {
	cluster   Cluster
	inventory Inventory
	now       func() time.Time
	correct   func(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog
	faults    Faults
	shortages shortages
	handled   handled
	ended     ended
}

var _ provider.Provider = (*Provider)(nil)

// New returns a provider. The error names what the configuration lacks.
func New(c Config) (*Provider, error) {
	switch {
	case c.Cluster == nil:
		return nil, errors.New("kwok provider: no cluster")
	case c.Now == nil:
		return nil, errors.New("kwok provider: no clock")
	case len(c.Inventory.catalog.Types) == 0:
		return nil, errors.New("kwok provider: the inventory has no instance types; want at least one")
	}
	if c.Correct == nil {
		c.Correct = func(_ *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog { return c }
	}
	if err := c.Faults.check(c.Inventory.catalog); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	return &Provider{cluster: c.Cluster, inventory: c.Inventory, now: c.Now, correct: c.Correct, faults: c.Faults}, nil
}

// Name returns "kwok".
func (p *Provider) Name() string { return "kwok" }

// NodeClass returns KWOKNodeClass in karpenter.kwok.sh.
func (p *Provider) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass"}
}

// Owns reports whether the ID is of the form kwok://<node name>.
func (p *Provider) Owns(providerID string) bool {
	name, own := strings.CutPrefix(providerID, providerIDPrefix)
	return own && name != ""
}

// Catalog returns the inventory. All node classes offer the same, apart from injected faults. Used-up reservations and
// offerings that were short recently are unavailable.
func (p *Provider) Catalog(ctx context.Context, className string) (catalog.Catalog, error) {
	if err := p.throttled(ctx, callCatalog, className); err != nil {
		return catalog.Catalog{}, err
	}
	class, err := p.nodeClass(ctx, className)
	if err != nil {
		return catalog.Catalog{}, err
	}
	faults, err := p.faultsOf(class)
	if err != nil {
		return catalog.Catalog{}, err
	}
	return p.offered(ctx, className, faults)
}

// offered returns the current catalogue of a node class. Only reservations require a list of the machines.
func (p *Provider) offered(ctx context.Context, className string, faults Faults) (catalog.Catalog, error) {
	var instances []provider.Instance
	if len(p.inventory.reservations) > 0 {
		var err error
		if instances, err = p.list(ctx); err != nil {
			return catalog.Catalog{}, err
		}
	}
	now := p.now()
	return p.shortages.without(className, faults.priced(p.inventory.left(instances), now), now), nil
}

// nodeClass returns a node class that is usable.
func (p *Provider) nodeClass(ctx context.Context, name string) (*kwokv1alpha1.KWOKNodeClass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	class, err := p.cluster.NodeClass(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: KWOKNodeClass %s", provider.ErrNodeClassNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("getting KWOKNodeClass %s: %w", name, err)
	}
	if class.DeletionTimestamp != nil {
		return nil, &provider.NodeClassNotReadyError{Class: name, Reason: "it is being deleted"}
	}
	for _, c := range class.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeReady && c.Status == metav1.ConditionFalse {
			return nil, &provider.NodeClassNotReadyError{
				Class: name, Reason: strings.TrimSpace(c.Reason + " " + c.Message),
			}
		}
	}
	return class, nil
}

// Get returns a machine, booting or joined.
func (p *Provider) Get(ctx context.Context, providerID string) (provider.Instance, error) {
	if err := p.throttled(ctx, callGet, providerID); err != nil {
		return provider.Instance{}, err
	}
	node, err := p.find(ctx, providerID)
	if err != nil {
		return provider.Instance{}, err
	}
	return instanceOf(node), nil
}

// find returns the node of a machine, or its boot record's. The record is read first: a booting machine's node is
// created before its record is deleted, so one of the two reads sees it.
func (p *Provider) find(ctx context.Context, providerID string) (*corev1.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, own := strings.CutPrefix(providerID, providerIDPrefix)
	if !own || name == "" {
		return nil, fmt.Errorf("%w: %q is no provider ID of the form kwok://<node name>", provider.ErrNotFound,
			providerID)
	}
	if p.ended.justNow(providerID, p.now()) {
		return nil, fmt.Errorf("%w: %s is terminated", provider.ErrNotFound, providerID)
	}
	record, recordErr := p.cluster.BootRecord(ctx, name)
	if recordErr != nil && !apierrors.IsNotFound(recordErr) {
		return nil, fmt.Errorf("getting boot record %s: %w", name, recordErr)
	}
	node, err := p.cluster.Node(ctx, name)
	switch {
	case err == nil && p.isMachine(node) && node.Spec.ProviderID == providerID:
		return node, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("getting node %s: %w", name, err)
	case recordErr == nil:
		return record.Node, nil
	}
	return nil, fmt.Errorf("%w: %s", provider.ErrNotFound, providerID)
}

// List returns all machines, booting or joined, ordered by provider ID.
func (p *Provider) List(ctx context.Context) ([]provider.Instance, error) {
	if err := p.throttled(ctx, callList, ""); err != nil {
		return nil, err
	}
	return p.list(ctx)
}

func (p *Provider) list(ctx context.Context) ([]provider.Instance, error) {
	records, err := p.cluster.BootRecords(ctx) // before the nodes: see find
	if err != nil {
		return nil, fmt.Errorf("listing boot records: %w", err)
	}
	nodes, err := p.cluster.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var instances []provider.Instance
	joined := map[string]bool{}
	for _, node := range nodes {
		if p.isMachine(node) {
			joined[node.Spec.ProviderID] = true
			instances = append(instances, instanceOf(node))
		}
	}
	for _, record := range records {
		if !joined[record.Node.Spec.ProviderID] {
			instances = append(instances, instanceOf(record.Node))
		}
	}
	slices.SortFunc(instances, func(a, b provider.Instance) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	return instances, nil
}

// RepairPolicies are those of Karpenter's KWOK provider.
func (p *Provider) RepairPolicies() []provider.RepairPolicy {
	const (
		kubelet = 10 * time.Minute
		trial   = 30 * time.Second
	)
	none, drain, reboot := time.Duration(0), 45*time.Second, time.Minute
	return []provider.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, Toleration: kubelet,
			TerminationGracePeriod: &none},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, Toleration: kubelet,
			TerminationGracePeriod: &none},
		{ConditionType: UnhealthyCondition, ConditionStatus: corev1.ConditionTrue, Toleration: trial,
			TerminationGracePeriod: &drain},
		{ConditionType: RebootCondition, ConditionStatus: corev1.ConditionTrue, Toleration: trial,
			TerminationGracePeriod: &reboot, Reboot: true},
	}
}

// Reboot gives the node of a machine another boot ID, like a kubelet after a reboot, and clears the condition that a
// reboot cures. The boot ID is derived from the operation: repeating it changes nothing. The node stays ready
// meanwhile, since KWOK's controller says so.
func (p *Provider) Reboot(ctx context.Context, providerID, operation string) error {
	if err := p.throttled(ctx, callReboot, providerID); err != nil {
		return err
	}
	node, err := p.find(ctx, providerID)
	if err != nil {
		return err
	}
	bootID := "kwok-" + operation
	switch {
	case node.UID == "":
		return &provider.RebootError{Message: "node " + node.Name + " has not joined yet"}
	case node.Status.NodeInfo.BootID == bootID:
		return nil
	}
	cured := corev1.NodeCondition{Type: RebootCondition, Status: corev1.ConditionFalse, Reason: "Rebooted",
		LastTransitionTime: metav1.NewTime(p.now())}
	if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == RebootCondition
	}) {
		cured = corev1.NodeCondition{}
	}
	err = p.cluster.BootNode(ctx, node.Name, node.UID, bootID, cured)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s", provider.ErrNotFound, providerID)
	}
	if err != nil {
		return fmt.Errorf("rebooting node %s: %w", node.Name, err)
	}
	return nil
}
