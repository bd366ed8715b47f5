package autonode

import (
	"fmt"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// writes returns a cluster's requests to change a resource, with those that were refused.
func (w *world) writes(of *rig.Rig, resource string) []cluster.Event {
	w.t.Helper()
	return w.events(of, func(e cluster.Event) bool {
		return e.Resource == resource && e.Verb != "get" && e.Verb != "list" && e.Verb != "watch"
	})
}

// events returns the audit log's entries that keep chooses.
func (w *world) events(of *rig.Rig, keep func(cluster.Event) bool) []cluster.Event {
	w.t.Helper()
	var found []cluster.Event
	err := cluster.ReadAudit(of.Cluster.AuditLog(), func(e cluster.Event) {
		if keep(e) {
			found = append(found, e)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestR23_ANodePoolThatStrayedIsRepaired(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.pool("r23", wants(in(instanceType, "b")))
	w.merged("r23", in(instanceType, "a", "b"), in(instanceType, "b"))
	pool := w.get(nodePoolKind, "r23")
	w.mustPatch(w.exempt, pool, object{"spec": object{"weight": int64(9)}})
	w.eventually("the weight to go", func() (bool, string) {
		weight := field(w.get(nodePoolKind, "r23"), "spec", "weight")
		return weight == nil, show(weight)
	})
	w.mustPatch(w.exempt, pool, object{"spec": wants(in(instanceType, "z"))})
	w.merged("r23", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.remove(w.exempt, pool)
	w.eventually("a new NodePool", func() (bool, string) {
		now := w.get(nodePoolKind, "r23")
		return now != nil && now.GetUID() != pool.GetUID(), "none yet"
	})
	w.merged("r23", in(instanceType, "a", "b"), in(instanceType, "b"))
}

func TestR24_TheWrapperGoesAfterItsNodePool(t *testing.T) {
	w := begin(t)
	wrapper := w.pool("r24", wants(in(instanceType, "a")))
	w.merged("r24", in(instanceType, "a"))
	// Karpenter holds its pools with a finalizer while their nodes go.
	w.mustPatch(w.cadmin, w.get(nodePoolKind, "r24"),
		object{"metadata": object{"finalizers": []any{"example.com/held"}}})
	w.remove(w.cadmin, wrapper)
	w.eventually("the NodePool's deletion to begin", func() (bool, string) {
		pool := w.get(nodePoolKind, "r24")
		return pool != nil && pool.GetDeletionTimestamp() != nil, "not yet"
	})
	w.stays("what is there", func() any {
		return []bool{w.get(poolWrapper, "r24") != nil, w.get(nodePoolKind, "r24") != nil}
	})
	if w.get(poolWrapper, "r24") == nil {
		t.Fatal("the wrapper went before its NodePool")
	}
	w.mustPatch(w.cadmin, w.get(nodePoolKind, "r24"), object{"metadata": object{"finalizers": []any{}}})
	w.gone("r24")
}

// gone waits until neither the wrapper nor its NodePool is left.
func (w *world) gone(name string) {
	w.t.Helper()
	w.eventually("pool and wrapper "+name+" to go", func() (bool, string) {
		pool, wrapper := w.get(nodePoolKind, name), w.get(poolWrapper, name)
		return pool == nil && wrapper == nil, fmt.Sprintf("NodePool there: %t, wrapper there: %t", pool != nil,
			wrapper != nil)
	})
}

// orphan removes the wrapper of a NodePool while the operator cannot act.
func (w *world) orphan(name string) {
	w.t.Helper()
	wrapper := w.pool(name, wants(in(instanceType, "a")))
	w.merged(name, in(instanceType, "a"))
	w.signal(syscall.SIGSTOP)
	w.mustPatch(w.cadmin, w.get(poolWrapper, name), object{"metadata": object{"finalizers": []any{}}})
	w.remove(w.cadmin, wrapper)
	if w.get(poolWrapper, name) != nil || w.get(nodePoolKind, name) == nil {
		w.t.Fatal("the NodePool is not an orphan")
	}
}

func (w *world) signal(signal syscall.Signal) {
	w.t.Helper()
	if err := syscall.Kill(w.operator.PID(), signal); err != nil {
		w.t.Fatal(err)
	}
}

func TestR25_OrphansAreDeleted(t *testing.T) {
	w := begin(t)
	w.orphan("r25")
	w.signal(syscall.SIGCONT)
	w.gone("r25")
	w.orphan("r25-restart")
	if err := w.operator.Kill(); err != nil {
		t.Fatal(err)
	}
	w.operator = nil
	w.run()
	w.gone("r25-restart")
}

// G18: NodePools that are not ours stay; a wrapper of the same name adopts them.
func TestR25_NodePoolsThatAreNotOursStayAndCanBeAdopted(t *testing.T) {
	w := begin(t)
	theirs := newObject(nodePoolKind, "", "r25-theirs", parse(`{template: {spec: {
		nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
		requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}}}`))
	if err := w.exempt.Create(w.ctx, theirs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.remove(w.exempt, theirs) })
	w.restart()
	w.stays("the NodePool of somebody else", func() any { return w.get(nodePoolKind, "r25-theirs") != nil })
	w.policy(restrict(in(instanceType, "a")))
	w.pool("r25-theirs", wants(in(arch, "arm64")))
	w.merged("r25-theirs", in(instanceType, "a"), in(arch, "arm64"))
	if uid := w.get(nodePoolKind, "r25-theirs").GetUID(); uid != theirs.GetUID() {
		t.Error("the adopted NodePool is a new one: its nodes would have gone")
	}
	w.remove(w.cadmin, w.get(poolWrapper, "r25-theirs"))
	w.gone("r25-theirs")
}

func TestR26_TheWrapperShowsTheNodePoolsStatus(t *testing.T) {
	w := begin(t)
	w.pool("r26", wants(in(instanceType, "a")))
	w.merged("r26", in(instanceType, "a"))
	pool := w.get(nodePoolKind, "r26")
	status := parse(`
resources: {cpu: "16", nodes: "2"}
conditions:
- {type: ValidationSucceeded, status: "True", reason: ValidationSucceeded, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: NodeClassReady, status: "False", reason: NodeClassNotReady, message: class is busy, lastTransitionTime: "2026-01-01T00:00:00Z"}`)
	if err := w.status(w.systemAdmin, pool, status); err != nil {
		t.Fatal(err)
	}
	w.eventually("the wrapper to show resources", func() (bool, string) {
		got := field(w.get(poolWrapper, "r26"), "status", "resources")
		return reflect.DeepEqual(got, any(object{"cpu": "16", "nodes": "2"})), show(got)
	})
	w.poolSays("r26", "ValidationSucceeded", "True", "ValidationSucceeded")
	w.poolSays("r26", "NodeClassReady", "False", "NodeClassNotReady", "class is busy")
}

func TestR27_ItWorksForNoPoolsAndWithoutKarpenter(t *testing.T) {
	w := begin(t)
	if running := w.guest.Cluster.PIDs(); len(running) != 2 {
		t.Errorf("in the guest run %v, want etcd and the API server only", running)
	}
	began := time.Now()
	w.policy(restrict(in(instanceType, "a")))
	w.policySays("True", "")
	t.Logf("a policy without pools was ready after %s", time.Since(began).Round(time.Millisecond))
}
