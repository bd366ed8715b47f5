package takeover

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// journal records from watches what happens to NodeClaims and Nodes. So it misses nothing that comes and goes between
// two looks.
type journal struct {
	stop func()
	mu   sync.Mutex
	// fleet has the present objects, by kind, name and UID.
	fleet map[string]bool
	// disturbed has the events since the last call of take that a takeover must not cause.
	disturbed []string
	broken    error // the watches'
}

// watchFleet begins a journal with the cluster as it is.
func watchFleet(t *testing.T, api client.WithWatch) *journal {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	j := &journal{fleet: map[string]bool{}, stop: func() { cancel(); running.Wait() }}
	t.Cleanup(j.stop)
	var claims karpenterv1.NodeClaimList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&claims, &nodes} {
		if err := api.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		events, err := api.Watch(ctx, list,
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				j.write(event)
			}
			if ctx.Err() == nil {
				j.fail(fmt.Errorf("the watch of %T has ended", list))
			}
		})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range claims.Items {
		j.fleet[identity(&claims.Items[i])] = true
	}
	for i := range nodes.Items {
		j.fleet[identity(&nodes.Items[i])] = true
	}
	return j
}

func identity(object client.Object) string {
	return fmt.Sprintf("%T %s %s", object, object.GetName(), object.GetUID())
}

// rewatch changes the CRDs, which ends watches, and goes on with a new journal. Nothing may have happened in between.
func (c *cluster) rewatch(change func(context.Context) error) {
	c.t.Helper()
	c.stop()
	c.must(change(c.t.Context()))
	before := c.journal
	c.journal = watchFleet(c.t, c.Client)
	if !maps.Equal(before.fleet, c.fleet) {
		c.t.Fatalf("the fleet was\n%v\nand is\n%v", before.fleet, c.fleet)
	}
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = err
}

func (j *journal) write(event watch.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	object, ok := event.Object.(client.Object)
	if !ok {
		j.broken = fmt.Errorf("a watch answered %s %v", event.Type, event.Object)
		return
	}
	switch event.Type {
	case watch.Added:
		j.fleet[identity(object)] = true
	case watch.Deleted:
		delete(j.fleet, identity(object))
	}
	if what := disturbance(event.Type, object); what != "" {
		j.disturbed = append(j.disturbed, fmt.Sprintf("%T %s %s", object, object.GetName(), what))
	}
}

// disturbance returns how an event disturbs a fleet that must be left alone, or "".
func disturbance(kind watch.EventType, object client.Object) string {
	switch {
	case kind == watch.Added:
		return "has come"
	case kind == watch.Deleted:
		return "has gone"
	case object.GetDeletionTimestamp() != nil:
		return "is being deleted"
	}
	switch object := object.(type) {
	case *karpenterv1.NodeClaim:
		for _, condition := range object.Status.Conditions {
			positive := condition.Type != karpenterv1.ConditionTypeDrifted &&
				condition.Type != karpenterv1.ConditionTypeDisruptionReason
			switch {
			case !positive && condition.Status == metav1.ConditionTrue:
				return fmt.Sprintf("is %s: %s %s", condition.Type, condition.Reason, condition.Message)
			case condition.Type == karpenterv1.ConditionTypeInitialized && condition.Status != metav1.ConditionTrue:
				return "is not initialized any more"
			}
		}
	case *corev1.Node:
		for _, taint := range object.Spec.Taints {
			if strings.HasPrefix(taint.Key, "karpenter.sh/") {
				return "has the taint " + taint.Key
			}
		}
	}
	return ""
}

// take returns what has disturbed the fleet since the last call.
func (j *journal) take(t *testing.T) []string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		t.Fatal(j.broken)
	}
	taken := j.disturbed
	j.disturbed = nil
	return taken
}
