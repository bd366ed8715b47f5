package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	nodeclass "github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file says what machines read at their start, for package userdata.

// userData returns what a machine reads at its start.
func (w *writer) userData(family, capacityType string, pods int64) (string, error) {
	claim, class := w.claim, w.order.class
	text := aws.ToString(class.Spec.UserData)
	if family == resolve.FamilyCustom {
		return text, nil
	}
	labels := maps.Clone(w.labels)
	labels[karpenterv1.CapacityTypeLabelKey] = capacityType
	labels[awsv1.NodeClassLabelKey] = class.Name
	// The kubelet sets all taints. When the node is registered, agents may have removed theirs already.
	labels[karpenterv1.NodeDoNotSyncTaintsLabelKey] = "true"
	facts := w.provider.config.Facts()
	node := userdata.Node{
		Cluster: facts.Join, Kubelet: class.Spec.Kubelet, MaxPods: pods, DNS: facts.DNS, Labels: labels,
		Taints: slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints,
			[]corev1.Taint{{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}}),
		LocalStorage: class.Spec.InstanceStorePolicy != nil && *class.Spec.InstanceStorePolicy == "RAID0",
	}
	if family == resolve.FamilyBottlerocket {
		return userdata.Bottlerocket(text, node, "")
	}
	return userdata.AL2023(text, node)
}

// userDataLabels returns the labels of a claim with which its node's kubelet registers. It leaves out those that only
// this claim has, and those that no kubelet takes. The node gets them when it is registered; the former would require
// a template for each claim (E-30).
func (p *Provider) userDataLabels(ctx context.Context, claim *karpenterv1.NodeClaim) (map[string]string, error) {
	pool := claim.Labels[karpenterv1.NodePoolLabelKey]
	ofPool, err := p.poolLabels(ctx, pool)
	if err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, r := range claim.Spec.Requirements {
		asked[r.Key] = true
	}
	labels := map[string]string{}
	for key, value := range claim.Labels {
		if common, fixed := ofPool[key]; (!asked[key] || fixed && common == value) && nodeclass.KubeletTakes(key) {
			labels[key] = value
		}
	}
	if pool != "" {
		labels[karpenterv1.NodePoolLabelKey] = pool
	}
	return labels, nil
}

// poolLabels returns the labels that all nodes of a pool have: those of its template, and those for which its
// requirements allow one value. There are none if the pool is gone.
func (p *Provider) poolLabels(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	pool, err := p.config.Cluster.NodePool(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting NodePool %s: %w", name, err)
	}
	set, _, _ := translate.PoolRequirements(pool) // what cannot be read fixes nothing
	labels := map[string]string{}
	for r := range set.All() {
		if value, single := r.Single(); single {
			labels[string(r.Key())] = value
		}
	}
	return labels, nil
}
