package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// maxListed is the maximum number of names in a condition or event.
const maxListed = 5

// budgetsOf returns the PDBs that select the pod.
func (c *Controller) budgetsOf(ctx context.Context, pod *corev1.Pod) ([]policyv1.PodDisruptionBudget, error) {
	var all policyv1.PodDisruptionBudgetList
	if err := c.config.Client.List(ctx, &all, client.InNamespace(pod.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets of namespace %s: %w", pod.Namespace, err)
	}
	return slices.DeleteFunc(all.Items, func(b policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		return err != nil || !selector.Matches(labels.Set(pod.Labels))
	}), nil
}

// describe says which PDBs refuse an eviction, and whether waiting can help (P-42).
func describe(budgets []policyv1.PodDisruptionBudget, refusal string) string {
	if len(budgets) == 0 {
		return refusal
	}
	parts := make([]string, 0, len(budgets))
	for _, b := range budgets {
		if b.Status.DisruptionsAllowed > 0 && len(budgets) == 1 {
			return refusal // by its status, the PDB is not the cause
		}
		text := fmt.Sprintf("PodDisruptionBudget %s allows %d disruptions (%d of %d pods are healthy, it wants %d)",
			b.Name, b.Status.DisruptionsAllowed, b.Status.CurrentHealthy, b.Status.ExpectedPods,
			b.Status.DesiredHealthy)
		if why := translate.NeverAllows(&b); why != "" {
			text += "; it can never allow one: " + why
		}
		parts = append(parts, text)
	}
	if len(budgets) > 1 {
		parts = append(parts, "a pod under more than one PodDisruptionBudget cannot be evicted: keep one")
	}
	return strings.Join(parts, "; ")
}

// attachedVolumes returns the names of the volumes attached to the node, except those of pods that stay on it.
func (c *Controller) attachedVolumes(ctx context.Context, node *corev1.Node, pods []corev1.Pod) ([]string, error) {
	var attachments storagev1.VolumeAttachmentList
	if err := c.config.Client.List(ctx, &attachments); err != nil {
		return nil, fmt.Errorf("listing the VolumeAttachments of node %s: %w", node.Name, err)
	}
	var volumes []string
	for _, a := range attachments.Items {
		if a.Spec.NodeName == node.Name && a.Spec.Source.PersistentVolumeName != nil {
			volumes = append(volumes, *a.Spec.Source.PersistentVolumeName)
		}
	}
	if len(volumes) == 0 {
		return nil, nil
	}
	staying, err := c.volumesOf(ctx, pods)
	if err != nil {
		return nil, err
	}
	volumes = slices.DeleteFunc(volumes, func(name string) bool { return staying[name] })
	slices.Sort(volumes)
	return volumes, nil
}

// volumesOf returns the names of the volumes of pods that the drain leaves on the node: while the node exists, nothing
// detaches those.
func (c *Controller) volumesOf(ctx context.Context, pods []corev1.Pod) (map[string]bool, error) {
	names := map[string]bool{}
	now := c.config.Now()
	for i := range pods {
		pod := &pods[i]
		if mustLeave(pod, now) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			name := claimNameOf(pod, volume)
			if name == "" {
				continue
			}
			var pvc corev1.PersistentVolumeClaim
			if err := c.config.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name},
				&pvc); err != nil {
				if client.IgnoreNotFound(err) == nil {
					continue
				}
				return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", pod.Namespace, name, err)
			}
			names[pvc.Spec.VolumeName] = true
		}
	}
	return names, nil
}

func claimNameOf(pod *corev1.Pod, volume corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}

// listSome joins the first few texts and adds the number of the others.
func listSome(texts []string) string {
	if len(texts) <= maxListed {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:maxListed], "; "), len(texts)-maxListed)
}

func ownedByDaemonSet(owner metav1.OwnerReference) bool { return owner.Kind == "DaemonSet" }

func hasTaint(node *corev1.Node, key string, effect corev1.TaintEffect) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == key && t.Effect == effect
	})
}

func disruptedTaint() corev1.Taint {
	return corev1.Taint{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
