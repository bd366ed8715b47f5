package cases

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // puts the kinds and their defaults into the scheme
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // as above
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
)

// admit returns the pod as the API server stores it at creation: with defaults, and with matchLabelKeys merged into
// selectors. Invalid pods are refused. What others set later (status, node, deletion) is kept.
func admit(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	own := pod.DeepCopy()
	own.DeletionTimestamp, own.DeletionGracePeriodSeconds = nil, nil
	legacyscheme.Scheme.Default(own)
	var internal api.Pod
	if err := legacyscheme.Scheme.Convert(own, &internal, nil); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	podregistry.Strategy.PrepareForCreate(ctx, &internal)
	if errs := podregistry.Strategy.Validate(ctx, &internal); len(errs) > 0 {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, errs.ToAggregate())
	}
	var stored corev1.Pod
	if err := legacyscheme.Scheme.Convert(&internal, &stored, nil); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	stored.Status = *pod.Status.DeepCopy()
	stored.DeletionTimestamp = pod.DeletionTimestamp
	return &stored, nil
}

func admitDaemon(set *appsv1.DaemonSet) *appsv1.DaemonSet {
	own := set.DeepCopy()
	legacyscheme.Scheme.Default(own)
	return own
}
