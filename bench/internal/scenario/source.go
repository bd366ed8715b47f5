package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// source is the seeded chance of one scenario.
type source struct{ *rand.Rand }

func newSource(seed uint64, name string) source {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return source{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

func pick[T any](s source, from []T) T { return from[s.IntN(len(from))] }

// podSpec has what scenarios vary in a pod. Amounts are in milli-cores and Mi.
type podSpec struct {
	name         string
	milliCores   int64
	mebibytes    int64
	labels       map[string]string
	spread       []corev1.TopologySpreadConstraint
	affinity     *corev1.Affinity
	nodeSelector map[string]string
	node         string // bound to it; pending without
	resourceRev  int    // order of appearance
}

func (p podSpec) pod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: p.name, UID: types.UID("uid-" + p.name), Labels: p.labels,
			ResourceVersion: strconv.Itoa(p.resourceRev + 1),
		},
		Spec: corev1.PodSpec{
			NodeName: p.node, SchedulerName: corev1.DefaultSchedulerName, RestartPolicy: corev1.RestartPolicyAlways,
			TopologySpreadConstraints: p.spread, Affinity: p.affinity, NodeSelector: p.nodeSelector,
			Containers: []corev1.Container{
				{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewMilliQuantity(p.milliCores, resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(p.mebibytes<<20, resource.BinarySI),
				}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if p.node == "" {
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}
	} else {
		pod.Status.Phase = corev1.PodRunning
	}
	return pod
}

func numbered(kind string, i int) string { return fmt.Sprintf("%s-%06d", kind, i) }

func selector(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}
