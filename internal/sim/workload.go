package sim

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	appLabel      = "app"
	metaNamespace = "default"
)

// workload is a ReplicaSet and the properties of its pods.
type workload struct {
	name     string
	replicas int
	cpu, mem resource.Quantity
	tied     bonds
	protect  bool // karpenter.sh/do-not-disrupt
	clings   bool // kubelets never end some of its pods
	bare     bool // its pods name no controller
	priority int32
	grace    time.Duration
	wants    arguments // see wants
	disk     string    // see diskOf
}

// scale corrects the number of pods.
func (c *cluster) scale(name string) {
	l := c.workloads[name]
	var active []*corev1.Pod
	c.world.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		if pod.Labels[appLabel] == name && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded &&
			pod.Status.Phase != corev1.PodFailed {
			active = append(active, pod)
		}
	})
	// by ordinals, like a StatefulSet: otherwise an evicted pod would come back with the disk of another one
	if l.disk != "" {
		c.world.server.All(&corev1.Pod{}, func(o client.Object) { // the next one of the same name has the disk
			if pod := o.(*corev1.Pod); pod.Labels[appLabel] == name && translate.Finished(pod) {
				c.remove(pod)
			}
		})
		active = slices.DeleteFunc(active, func(pod *corev1.Pod) bool {
			if slices.Contains(l.ordinals(), pod.Name) {
				return false
			}
			c.must(c.world.server.Delete(pod, client.ObjectKeyFromObject(pod), apiserver.DeleteOptions{}))
			return true
		})
	}
	for len(active) < l.replicas {
		next := c.nextName(l)
		if next == "" {
			break
		}
		pod := l.pod(next)
		c.addDisk(l, pod)
		c.must(c.world.server.Create(pod))
		active = append(active, pod)
	}
	waiting := func(p *corev1.Pod) int {
		if p.Spec.NodeName == "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(active, func(a, b *corev1.Pod) int { // waiting ones go first, then the newest
		return cmp.Or(waiting(a)-waiting(b), cmp.Compare(b.Name, a.Name))
	})
	for _, pod := range active[:max(0, len(active)-l.replicas)] {
		c.must(c.world.server.Delete(pod, client.ObjectKeyFromObject(pod), apiserver.DeleteOptions{}))
	}
}

// kind returns the kind of the pods' owner. Those with disks are a StatefulSet's: the successor of a pod has its name,
// and so it comes once the pod is gone.
func (l *workload) kind() string {
	if l.disk != "" {
		return "StatefulSet"
	}
	return "ReplicaSet"
}

func (l *workload) pod(name string) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metaNamespace, Name: name, Labels: map[string]string{appLabel: l.name},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: l.kind(), Name: l.name, UID: types.UID("owner-of-" + l.name),
					Controller: &yes},
			},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(l.grace / time.Second)),
			Containers: []corev1.Container{
				{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: l.cpu, corev1.ResourceMemory: l.mem,
				}}}},
		},
	}
	if l.bare {
		pod.OwnerReferences = nil
	}
	if l.priority != 0 {
		pod.Spec.Priority = &l.priority
	}
	wants(l.wants, &pod.Spec)
	if l.protect {
		pod.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	}
	l.tied.apply(l.name, &pod.Spec)
	return pod
}

// guard returns the workload's PodDisruptionBudget.
func (l *workload) guard(spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
	spec.Selector = selectorOf(l.name)
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metaNamespace, Name: l.name},
		Spec: spec}
}
