package apisemantics

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// running creates n pods that are running and ready.
func (b bench) running(n int) []*corev1.Pod {
	b.t.Helper()
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = b.pod(fmt.Sprint(i))
		b.create(pods[i])
		pods[i].Status.Phase = corev1.PodRunning
		pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		b.must("updating the status of a pod", b.Status().Update(b.t.Context(), pods[i]))
	}
	return pods
}

func (b bench) evict(pod *corev1.Pod, uid types.UID) error {
	return b.SubResource("eviction").Create(b.t.Context(), pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
}

func evictions(b bench) {
	pods := b.running(2)
	budget := b.budget("one", 1)
	b.create(budget)
	b.Settle(b.t, budget)
	b.must("evicting the first", b.evict(pods[0], pods[0].UID))
	b.want("evicting the second", b.evict(pods[1], pods[1].UID), apierrors.IsTooManyRequests)
	b.get(pods[0])
	b.get(pods[1])
	if pods[0].DeletionTimestamp == nil || pods[1].DeletionTimestamp != nil {
		b.t.Errorf("deletion timestamps %v and %v; want the first pod to end", pods[0].DeletionTimestamp,
			pods[1].DeletionTimestamp)
	}
	b.must("evicting the first again", b.evict(pods[0], pods[0].UID))
}

func blockedEvictions(b bench) {
	pod := b.running(1)[0]
	budget := b.budget("all", 1)
	b.create(budget)
	b.Settle(b.t, budget)
	err := b.evict(pod, pod.UID)
	b.want("evicting", err, apierrors.IsTooManyRequests)
	if !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		b.t.Errorf("error %v does not say that a budget is the cause", err)
	}
	b.must("deleting directly", b.Delete(b.t.Context(), pod))
}

func twoBudgets(b bench) {
	pod := b.running(1)[0]
	for _, name := range []string{"one", "two"} {
		budget := b.budget(name, 0)
		b.create(budget)
		b.Settle(b.t, budget)
	}
	b.want("evicting", b.evict(pod, pod.UID), apierrors.IsInternalError)
}

func evictionPreconditions(b bench) {
	pod := b.running(1)[0]
	b.want("evicting another UID", b.evict(pod, "another"), apierrors.IsConflict)
	b.must("evicting", b.evict(pod, pod.UID))
	pod.Name += "-gone"
	b.want("evicting what is not there", b.evict(pod, pod.UID), apierrors.IsNotFound)
}
