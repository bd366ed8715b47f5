package system

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Scheduler is the side of kube-scheduler alone, without a controller.
const Scheduler = "kube-scheduler"

// podsPerNode is how many pods a node of the floor gets on average. Both sides plan 20 to 21.
const podsPerNode = 20

// floor measures the time that kube-scheduler needs for the pods of the workload, whoever launches the nodes. First it
// measures how long until kube-scheduler has passed over each pod in an empty cluster: both sides wait for that. Then
// it makes nodes with room for all, and measures how long until all pods are bound. A controller that plans in no
// time, and whose machines come at once, needs the sum of both.
func floor(ctx context.Context, r *rig.Rig, pods int) (p Phase, err error) {
	seen, err := see(ctx, r.Client)
	if err != nil {
		return p, err
	}
	defer seen.stop()
	w := watcher{Rig: r, fleet: seen}
	p = Phase{Name: Apply, Side: Scheduler, from: time.Now()}
	if err := w.Apply(ctx, workload(pods)); err != nil {
		return p, err
	}
	over, err := w.until(ctx, func(s sight) bool { return s.over == pods })
	if err != nil {
		return p, err
	}
	p.PassedOver = over.passed.Sub(p.from).Seconds()
	ready := time.Now() // the first of them has room for nearly all pods: kube-scheduler begins at once
	if err := makeNodes(ctx, r, pods/podsPerNode); err != nil {
		return p, err
	}
	all, err := w.until(ctx, func(s sight) bool { return s.bound == pods })
	if err != nil {
		return p, err
	}
	p.to, p.Bound, p.Launched, p.Left = time.Now(), all.bound, all.nodes, all.nodes
	p.WallSeconds = p.PassedOver + all.lastBound.Sub(ready).Seconds()
	return p, w.remove(ctx, "deployments", "nodes")
}

// makeNodes makes nodes with room for all, several at a time: kube-scheduler does not wait for them.
func makeNodes(ctx context.Context, r *rig.Rig, nodes int) error {
	const workers = 8
	var all sync.WaitGroup
	failures := make([]error, workers)
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < nodes && failures[worker] == nil; i += workers {
				if err := r.Client.Create(ctx, roomyNode(fmt.Sprint("floor-", i))); err != nil {
					failures[worker] = fmt.Errorf("making a node: %w", err)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// until waits until done returns true.
func (w watcher) until(ctx context.Context, done func(sight) bool) (sight, error) {
	began := time.Now()
	for {
		now, err := w.look()
		if err != nil || done(now) {
			return now, err
		}
		if time.Since(began) > applyLimit {
			return now, fmt.Errorf("after %s: %s, %d passed over", applyLimit, now, now.over)
		}
		if err := w.pause(ctx); err != nil {
			return now, err
		}
	}
}

// roomyNode returns a ready node with room for all pods. With less room, pods with anti-affinity would find the first
// nodes full, and wait for further ones, as with controllers.
func roomyNode(name string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4k"), corev1.ResourceMemory: resource.MustParse("16Ti"),
		corev1.ResourcePods: resource.MustParse("10k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{cluster.FakeNodeAnnotation: cluster.FakeNodeValue},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
				corev1.LabelArchStable: "amd64"},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
		},
	}
}
