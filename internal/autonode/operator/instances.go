package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// InstanceNames asks a cloud by which names instances join as nodes. It returns names by provider ID, and omits
// instances that the cloud does not know. First certificates are approved only by this name. An error says that asking
// failed, which may pass.
type InstanceNames func(ctx context.Context, providerIDs []string) (map[string]string, error)

// simulatedPrefix begins the provider IDs of simulated machines; the node's name follows.
const simulatedPrefix = "kwok://"

// SimulatedInstanceNames returns the names of simulated machines only: their provider IDs contain the names of their
// nodes.
func SimulatedInstanceNames(_ context.Context, providerIDs []string) (map[string]string, error) {
	names := map[string]string{}
	for _, id := range providerIDs {
		if name, simulated := strings.CutPrefix(id, simulatedPrefix); simulated && name != "" {
			names[id] = name
		}
	}
	return names, nil
}

// NoInstanceNames returns no names, for clouds that cannot be asked.
func NoInstanceNames(context.Context, []string) (map[string]string, error) { return nil, nil }

// surroundings is the input of a step.
type surroundings struct {
	cluster approver.Cluster
	uids    map[string]types.UID // of NodeClaims, by name
	unnamed error                // why the cloud returned no names; only first certificates need them
}

// gather reads the requests from the API server: those approved a moment ago must be among them (see
// [approver.Cluster]). NodeClaims and nodes come from the cache, and are confirmed before an approval.
func (c *ApprovalController) gather(ctx context.Context) (surroundings, error) {
	var requests certificatesv1.CertificateSigningRequestList
	if err := c.config.Live.List(ctx, &requests); err != nil {
		return surroundings{}, fmt.Errorf("listing certificate requests: %w", err)
	}
	var claims karpenterv1.NodeClaimList
	if err := c.config.Guest.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return surroundings{}, fmt.Errorf("listing NodeClaims: %w", err)
	}
	var nodes corev1.NodeList
	if err := c.config.Guest.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return surroundings{}, fmt.Errorf("listing nodes: %w", err)
	}
	// Only first certificates need these names. Renewals do not wait for a cloud that does not answer.
	names, err := c.config.Names(ctx, concerned(claims.Items, requests.Items))
	if err != nil {
		err = fmt.Errorf("asking the cloud for the names of instances: %w", err)
	}
	s := surroundings{unnamed: err, uids: map[string]types.UID{},
		cluster: approver.Cluster{Now: c.config.Now(), Bootstrapper: c.config.Bootstrapper, Requests: requests.Items}}
	for i := range claims.Items {
		claim := &claims.Items[i]
		s.uids[claim.Name] = claim.UID
		s.cluster.Machines = append(s.cluster.Machines, machineOf(claim, names[claim.Status.ProviderID]))
	}
	for _, node := range nodes.Items {
		s.cluster.Nodes = append(s.cluster.Nodes, approver.Node{Name: node.Name, ProviderID: node.Spec.ProviderID,
			Addresses: node.Status.Addresses})
	}
	return s, nil
}

// concerned returns the provider IDs of the instances whose names matter: those that have not joined yet, and those
// whose nodes request a certificate. In a large cluster, most others do not.
func concerned(claims []karpenterv1.NodeClaim, requests []certificatesv1.CertificateSigningRequest) []string {
	asking := map[string]bool{}
	for _, csr := range requests {
		if undecided(csr) {
			asking[strings.TrimPrefix(csr.Spec.Username, "system:node:")] = true
		}
	}
	var ids []string
	for _, claim := range claims {
		if claim.Status.ProviderID != "" && (claim.Status.NodeName == "" || asking[claim.Status.NodeName]) {
			ids = append(ids, claim.Status.ProviderID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func machineOf(claim *karpenterv1.NodeClaim, instanceName string) approver.Machine {
	launched, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeLaunched)
	return approver.Machine{
		Claim: claim.Name, Created: claim.CreationTimestamp.Time, Launched: launched.Status == "True",
		Leaving:    claim.DeletionTimestamp != nil,
		ProviderID: claim.Status.ProviderID, NodeName: claim.Status.NodeName, InstanceName: instanceName,
	}
}
