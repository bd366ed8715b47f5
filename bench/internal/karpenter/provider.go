package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// provider is a cloud for planning, which needs its instance types only.
type provider struct {
	types []*cloudprovider.InstanceType
}

func unused(what string) error { return fmt.Errorf("%s: planning must not call the cloud", what) }

// Create is not for planning.
func (p *provider) Create(context.Context, *v1.NodeClaim) (*v1.NodeClaim, error) {
	return nil, unused("Create")
}

// Delete is not for planning.
func (p *provider) Delete(context.Context, *v1.NodeClaim) error { return unused("Delete") }

// Get is not for planning.
func (p *provider) Get(context.Context, string) (*v1.NodeClaim, error) { return nil, unused("Get") }

// List is not for planning.
func (p *provider) List(context.Context) ([]*v1.NodeClaim, error) { return nil, unused("List") }

// GetInstanceTypes returns the scenario's types.
func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, nil
}

// IsDrifted says that nothing has drifted.
func (p *provider) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}

// Reboot is not for planning.
func (p *provider) Reboot(context.Context, *v1.NodeClaim, string) error { return unused("Reboot") }

// RepairPolicies returns none.
func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

// Name names the provider.
func (p *provider) Name() string { return "bench" }

// GetSupportedNodeClasses returns the kind that the pool refers to.
func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

// Outcome returns the result of the last Plan.
func (p *Planner) Outcome() (outcome.Outcome, error) {
	result := outcome.Outcome{Existing: map[string][]string{}}
	placed := map[string]bool{}
	for _, claim := range p.results.NewNodeClaims {
		launch, err := cheapest(claim.InstanceTypeOptions, claim.Requirements)
		if err != nil {
			return result, err
		}
		for _, pod := range claim.Pods {
			launch.Pods = append(launch.Pods, client.ObjectKeyFromObject(pod).String())
		}
		launch.Sort()
		result.Launches = append(result.Launches, launch)
		for _, name := range launch.Pods {
			placed[name] = true
		}
	}
	for _, node := range p.results.ExistingNodes {
		for _, pod := range node.Pods {
			name := client.ObjectKeyFromObject(pod).String()
			result.Existing[node.Name()] = append(result.Existing[node.Name()], name)
			placed[name] = true
		}
	}
	for _, pod := range p.pending {
		if name := client.ObjectKeyFromObject(pod).String(); !placed[name] {
			result.Unplaced = append(result.Unplaced, name)
		}
	}
	slices.Sort(result.Unplaced)
	result.Order, result.CutOff = queued(p.pending), p.cut
	return result, nil
}

// queued returns the names of pods in the order in which the peer takes them up: the largest by CPU first, then by
// memory.
func queued(pods []*corev1.Pod) []string {
	amount := func(pod *corev1.Pod, name corev1.ResourceName) int64 {
		return pod.Spec.Containers[0].Resources.Requests.Name(name, resource.DecimalSI).MilliValue()
	}
	order := slices.Clone(pods)
	slices.SortStableFunc(order, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(amount(b, corev1.ResourceCPU), amount(a, corev1.ResourceCPU)),
			cmp.Compare(amount(b, corev1.ResourceMemory), amount(a, corev1.ResourceMemory)),
			strings.Compare(string(a.UID), string(b.UID)),
		)
	})
	names := make([]string, len(order))
	for i, pod := range order {
		names[i] = client.ObjectKeyFromObject(pod).String()
	}
	return names
}

// cheapest returns the cheapest available offering that a claim allows.
func cheapest(types cloudprovider.InstanceTypes, demands scheduling.Requirements) (outcome.Launch, error) {
	var best outcome.Launch
	found := false
	for _, t := range types {
		for _, o := range t.Offerings {
			if !o.Available || !demands.IsCompatible(o.Requirements, scheduling.AllowUndefinedWellKnownLabels) {
				continue
			}
			price, err := resources.FromDollars(o.Price)
			if err != nil {
				return best, err
			}
			if !found || price < best.Price {
				best, found = outcome.Launch{Type: t.Name, Zone: o.Zone(), CapacityType: o.CapacityType(),
					Price: price}, true
			}
		}
	}
	if !found {
		return best, fmt.Errorf("a claim of %d instance types allows no available offering", len(types))
	}
	return best, nil
}
