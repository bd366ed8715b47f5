package e2e

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

var (
	poolResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// moment is one event of a watch. All kinds are in one etcd, so revisions order the events of all of them.
type moment struct {
	revision uint64
	at       time.Time // when the test heard of it
	kind     watch.EventType
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// launches reports whether a machine comes.
func (m moment) launches() bool { return m.resource == nodeResource && m.kind == watch.Added }

// picture is what exists after an event, and what had come and gone before.
type picture struct {
	objects map[schema.GroupVersionResource]map[string]*unstructured.Unstructured
	nodes   []*unstructured.Unstructured // all that ever came, as they first were
	gone    map[string]bool              // names of NodeClaims
}

func newPicture() *picture {
	objects := map[schema.GroupVersionResource]map[string]*unstructured.Unstructured{}
	return &picture{objects: objects, gone: map[string]bool{}}
}

func (p *picture) take(m moment) {
	if p.objects[m.resource] == nil {
		p.objects[m.resource] = map[string]*unstructured.Unstructured{}
	}
	if m.launches() {
		p.nodes = append(p.nodes, m.object)
	}
	if m.kind != watch.Deleted {
		p.objects[m.resource][m.object.GetName()] = m.object
		return
	}
	delete(p.objects[m.resource], m.object.GetName())
	if m.resource == claimResource {
		p.gone[m.object.GetName()] = true
	}
}

// of returns the claims or the machines of a pool. A node whose machine has ended does not count, though finalizers
// hold it.
func (p *picture) of(resource schema.GroupVersionResource, pool string) (found []*unstructured.Unstructured) {
	for _, object := range p.objects[resource] {
		_, ended := object.GetAnnotations()[kwok.TerminatedAnnotationKey]
		if object.GetLabels()[karpenterv1.NodePoolLabelKey] == pool && !ended {
			found = append(found, object)
		}
	}
	return found
}

// limit returns the pool's hard limit, -1 for none.
func (p *picture) limit(pool string) int {
	object := p.objects[poolResource][pool]
	if object == nil {
		return -1
	}
	n, found, err := unstructured.NestedInt64(object.Object, "spec", "hardLimits", "nodes")
	if err != nil || !found {
		return -1
	}
	return int(n)
}

// enforced reports whether a pool says that its limit is in force for its present generation.
func (p *picture) enforced(pool string) bool {
	object := p.objects[poolResource][pool]
	if object == nil {
		return false
	}
	status, observed, found := conditionIn(object, karpenterv1.ConditionTypeHardLimitEnforced)
	return found && status == "True" && observed == object.GetGeneration()
}

// launched reports whether a claim says that it has a machine.
func launched(claim *unstructured.Unstructured) bool {
	status, _, _ := conditionIn(claim, karpenterv1.ConditionTypeLaunched)
	return status == "True"
}

func conditionIn(object *unstructured.Unstructured, name string) (status string, observed int64, found bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		if c, is := entry.(map[string]any); is && c["type"] == name {
			status, _, _ = unstructured.NestedString(c, "status")
			observed, _, _ = unstructured.NestedInt64(c, "observedGeneration")
			return status, observed, true
		}
	}
	return "", 0, false
}

// film records every event about NodePools, NodeClaims and Nodes.
type film struct {
	r       *testRig
	mu      sync.Mutex
	moments []moment
	latest  *picture
	changed chan struct{} // closed when it is worth looking again
}

// film records from now until the test ends.
func (r *testRig) film() *film {
	r.t.Helper()
	f := &film{r: r, latest: newPicture(), changed: make(chan struct{})}
	for _, resource := range []schema.GroupVersionResource{poolResource, claimResource, nodeResource} {
		r.follow(resource, "", func(kind watch.EventType, object *unstructured.Unstructured) {
			f.take(kind, resource, object)
		})
	}
	return f
}

func (f *film) take(kind watch.EventType, resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		f.r.t.Errorf("%s %s: its resourceVersion is no revision of etcd: %v", resource.Resource, object.GetName(), err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := moment{revision, time.Now(), kind, resource, object}
	f.moments = append(f.moments, m)
	f.latest.take(m)
	close(f.changed)
	f.changed = make(chan struct{})
}

// look makes until look again.
func (f *film) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
}

// until waits until is holds. Watches of different kinds may lag behind each other a little.
func (f *film) until(within time.Duration, what string, is func(now *picture) bool) {
	f.r.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		f.mu.Lock()
		done, changed := is(f.latest), f.changed
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case err := <-f.r.Cluster.Failed():
			f.r.t.Fatalf("while waiting for %s: %v", what, err)
		case <-timer.C:
			f.r.t.Fatalf("waited %s for %s\n%s", within, what, f.r.standing())
		}
	}
}

// cut returns all moments so far in the order in which they happened.
func (f *film) cut() []moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	moments := slices.Clone(f.moments)
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.revision, b.revision) })
	return moments
}
