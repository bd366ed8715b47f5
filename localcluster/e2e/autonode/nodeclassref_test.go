package autonode

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// a pool launches only nodes of node classes that the operator has made.

// ofClass returns the spec of a pool that refers to an EC2NodeClass.
func ofClass(name string, entries ...object) object {
	spec := wants(entries...)
	spec["template"].(object)["spec"].(object)["nodeClassRef"] = object{"group": "karpenter.k8s.aws",
		"kind": "EC2NodeClass", "name": name}
	return spec
}

// rogue makes an EC2NodeClass without a wrapper, as those can who may impersonate the operator.
func (w *world) rogue(name string) *unstructured.Unstructured {
	w.t.Helper()
	class := handMadeClass(name)
	if err := w.exempt.Create(w.ctx, class); err != nil {
		w.t.Fatalf("the attack itself fails: %v", err)
	}
	w.t.Cleanup(func() { w.remove(w.exempt, handMadeClass(name)) })
	return class
}

// closed waits until no instance type fits a NodePool.
func (w *world) closed(name string) {
	w.t.Helper()
	since := time.Now()
	w.eventually("NodePool "+name+" to launch nothing", func() (bool, string) {
		entries := requirementsOf(w.get(nodePoolKind, name))
		return len(entries) > 0 && show(entries[len(entries)-1]) == show(entry(instanceType, "DoesNotExist")),
			show(entries)
	})
	w.folds(name, instanceType, []string{"a", "b", "t3.micro"}, []string{})
	w.saw(attack.Held, "", "NodePool "+name+" launches nothing", since)
}

func TestA06_APoolOfAClassThatNobodyManagesLaunchesNothing(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.policySays("True", "")
	w.halt()
	w.rogue("a06-rogue") // made before the operator ran
	there := newObject(nodePoolKind, "", "a06-there", ofClass("a06-rogue", in(instanceType, "b")))
	if err := w.exempt.Create(w.ctx, there); err != nil {
		t.Fatalf("the attack itself fails: %v", err)
	}
	w.run()
	began := time.Now()
	for _, name := range []string{"a06-there", "a06-new"} {
		w.pool(name, ofClass("a06-rogue", in(instanceType, "b")))
		w.poolSays(name, "NodeClassManaged", "False", "NodeClassUnmanaged", "a06-rogue")
		w.poolSays(name, "PolicyApplied", "False", "NodeClassUnmanaged")
	}
	w.closed("a06-there")
	w.policySays("False", "NodeClassUnmanaged", "a06-new", "a06-there")
	t.Logf("found %s after the pools were made", time.Since(began).Round(time.Millisecond))
	w.stays("the new pool", func() any { return w.get(nodePoolKind, "a06-new") == nil })

	// A wrapper adopts the class.
	w.class("a06-rogue", object{"monitoring": "Basic"})
	w.rooted(hardCoded, "a06-rogue")
	for _, name := range []string{"a06-there", "a06-new"} {
		w.merged(name, in(instanceType, "a", "b"), in(instanceType, "b"))
		w.poolSays(name, "NodeClassManaged", "True", "")
	}
	w.policySays("True", "")

	// And it is deleted while pools refer to it.
	began = time.Now()
	w.remove(w.cadmin, w.get(classWrapper, "a06-rogue"))
	for _, name := range []string{"a06-there", "a06-new"} {
		w.closed(name)
		w.poolSays(name, "NodeClassManaged", "False", "NodeClassUnmanaged", "a06-rogue")
	}
	w.policySays("False", "NodeClassUnmanaged")
	t.Logf("found %s after the class was deleted", time.Since(began).Round(time.Millisecond))
	w.class("a06-rogue", object{"monitoring": "Basic"})
	w.merged("a06-there", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.policySays("True", "")
}

// a class that is changed on its way to storage is not used: its pools are closed until it is as written.
func TestA06_APoolOfAnAlteredClassLaunchesNothing(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.class("a06-altered", object{"monitoring": "Basic"})
	w.pool("a06-pool", ofClass("a06-altered", in(instanceType, "b")))
	w.merged("a06-pool", in(instanceType, "a", "b"), in(instanceType, "b"))
	end := w.mutate(mutation{name: "a06", group: "karpenter.k8s.aws", resource: "ec2nodeclasses",
		object: "a06-altered", expression: classMutations()["spec.amiSelectorTerms[0].id"]})
	w.eventually("the class to be altered", func() (bool, string) {
		w.mustPatch(w.exempt, w.get(nodeClassKind, "a06-altered"),
			object{"metadata": object{"annotations": object{"now": time.Now().String()}}})
		said := condition(w.get(classWrapper, "a06-altered"), "PolicyApplied")
		return said["reason"] == "AlteredOnWrite", show(said)
	})
	w.closed("a06-pool")
	w.poolSays("a06-pool", "NodeClassManaged", "False", "NodeClassNotApplied", "a06-altered")
	w.policySays("False", "NodeClassNotApplied", "a06-altered (AlteredOnWrite)")
	end()
	w.eventuallyIn(mutationPatience, "the pool to be open again", func() (bool, string) {
		got := requirementsOf(w.get(nodePoolKind, "a06-pool"))
		return !strings.Contains(show(got), "DoesNotExist"), show(got)
	})
	w.policySays("True", "")
}
