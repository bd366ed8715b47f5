package conversion

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// journal records from watches what an upgrade must not do to NodeClaims and nodes. So it misses nothing that comes
// and goes between two looks.
type journal struct {
	stop      func()
	mu        sync.Mutex
	disturbed []string
}

// watchFleet begins a journal, also of what exists already. The journal ends with the test, or by stop: a change of
// the CRDs ends watches.
func (u *upgrade) watchFleet() *journal {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.t.Context())
	var running sync.WaitGroup
	j := &journal{stop: func() { cancel(); running.Wait() }}
	u.t.Cleanup(j.stop)
	for _, list := range []client.ObjectList{&karpenterv1.NodeClaimList{}, &corev1.NodeList{}} {
		must(u.t, u.running.Client.List(ctx, list))
		events, err := u.running.Client.Watch(ctx, list,
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		must(u.t, err)
		switch list := list.(type) {
		case *karpenterv1.NodeClaimList:
			for i := range list.Items {
				j.write(watch.Modified, &list.Items[i])
			}
		case *corev1.NodeList:
			for i := range list.Items {
				j.write(watch.Modified, &list.Items[i])
			}
		}
		running.Go(func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				if object, ok := event.Object.(client.Object); ok {
					j.write(event.Type, object)
				}
			}
			if ctx.Err() == nil {
				j.add(fmt.Sprintf("the watch of %T has ended", list))
			}
		})
	}
	return j
}

func (j *journal) write(kind watch.EventType, object client.Object) {
	if what := disturbance(kind, object); what != "" {
		j.add(fmt.Sprintf("%T %s %s", object, object.GetName(), what))
	}
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.disturbed = append(j.disturbed, line)
}

// read returns what has disturbed the fleet so far.
func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.disturbed)
}

// disturbance returns how an event disturbs a fleet that must be left alone, or "".
func disturbance(kind watch.EventType, object client.Object) string {
	switch {
	case kind == watch.Added, kind == watch.Deleted:
		return "is " + strings.ToLower(string(kind))
	case object.GetDeletionTimestamp() != nil:
		return "is being deleted"
	}
	switch object := object.(type) {
	case *karpenterv1.NodeClaim:
		for _, condition := range object.Status.Conditions {
			switch condition.Type {
			case karpenterv1.ConditionTypeDrifted, karpenterv1.ConditionTypeDisruptionReason,
				karpenterv1.ConditionTypeExpired:
				if condition.Status == metav1.ConditionTrue {
					return fmt.Sprintf("is %s: %s %s", condition.Type, condition.Reason, condition.Message)
				}
			case karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
				karpenterv1.ConditionTypeInitialized:
				if condition.Status != metav1.ConditionTrue {
					return "is not " + condition.Type + " any more"
				}
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

// reconciles counts the steps of each controller so far.
func reconciles(t *testing.T, metrics string) map[string]float64 {
	t.Helper()
	response, err := http.Get(metrics)
	must(t, err)
	defer response.Body.Close()
	count := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		labels, found := strings.CutPrefix(lines.Text(), `controller_runtime_reconcile_total{`)
		if !found {
			continue
		}
		_, labels, _ = strings.Cut(labels, `controller="`)
		name, _, _ := strings.Cut(labels, `"`)
		value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
		must(t, err)
		count[name] += value
	}
	must(t, lines.Err())
	return count
}
