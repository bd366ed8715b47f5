package conformance

import (
	"fmt"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

const requirementsField = "spec.template.spec.requirements"

// pool judges a NodePool. Its entries and template labels together must lie within the policy, minValues must be at
// least the policy's, and its node class must be the operator's.
func (l *look) pool(pool *karpenterv1.NodePool) {
	if pool.DeletionTimestamp != nil {
		return
	}
	l.seen(NodePool, pool.Name)
	w, ours := l.written(NodePool, pool)
	state, cause := l.whose(w)
	switch {
	case l.Memory.Others[NodePool]:
		state, cause, ours = NotConforming, NotOwned, false
	case !ours:
		if state, cause = l.stray(pool); cause == Foreign {
			l.add(Finding{NodePool, pool.Name, state, cause, "",
				"delete it, or make an OpenshiftNodePool of this name: it was made past the wrappers while nothing kept people from that"})
		}
	}
	add := func(field, format string, values ...any) {
		l.add(Finding{NodePool, pool.Name, state, cause, field, fmt.Sprintf(format, values...)})
	}
	entries := pool.Spec.Template.Spec.Requirements
	set := folded(entries, pool.Spec.Template.ObjectMeta.Labels)
	shut := closed(set)
	for allowed := range l.allowed.All() {
		key, has := allowed.Key(), set.Get(allowed.Key())
		switch {
		case has.Empty() && shut: // it launches nothing
		case has.Empty() && ours && !w.Altered && w.Failed == "":
			l.add(Finding{NodePool, pool.Name, NotConforming, IncompatibleRequirements, requirementsField, fmt.Sprintf(
				"change the pool's entries for %s: with the policy they leave nothing, and Karpenter launches nodes without the label",
				key)})
		case has.Empty() || !within(allowed, has):
			add(requirementsField, "allows %s, the policy %s", describe(has), describe(allowed))
		}
	}
	least := leastOf(entries)
	for allowed := range l.allowed.All() {
		if want := l.least[allowed.Key()]; least[allowed.Key()] < want {
			add(requirementsField, "asks for %d values of %s at least, the policy for %d", least[allowed.Key()],
				allowed.Key(), want)
		}
	}
	l.classRef(NodePool, pool.Name, "spec.template.spec.nodeClassRef", pool.Spec.Template.Spec.NodeClassRef)
}

// classRef judges which node class an object names: it must be one that the operator keeps. Node classes of KWOK start
// no machines that the policy is about.
func (l *look) classRef(kind, name, field string, ref *karpenterv1.NodeClassReference) {
	if ref == nil {
		return // the API server refuses objects without one
	}
	if ref.Kind == "KWOKNodeClass" && ref.Group == "karpenter.kwok.sh" {
		return
	}
	if ref.Kind == awsv1.EC2NodeClassKind && ref.Group == awsv1.Group {
		if l.Memory.Others[EC2NodeClass] && l.Memory.Wrapped[ref.Name] && l.classes[ref.Name] {
			return
		}
		w, found := l.Memory.Written[Product{EC2NodeClass, ref.Name}]
		if w.Class != nil {
			return
		}
		if found { // the class's own cause also applies to this object
			state, cause := l.whose(w)
			l.add(Finding{kind, name, state, cause, field,
				fmt.Sprintf("EC2NodeClass %s never was as the policy wants it", ref.Name)})
			return
		}
		if l.fresh() && !l.Memory.Others[EC2NodeClass] {
			l.add(Finding{kind, name, NotKnown, Unclear, field,
				fmt.Sprintf("EC2NodeClass %s has not been looked at yet", ref.Name)})
			return
		}
	}
	l.add(Finding{kind, name, NotConforming, NodeClassUnmanaged, field, fmt.Sprintf(
		"make an OpenshiftEC2NodeClass of the name %s, or name another one: %s %s is not the operator's", ref.Name,
		ref.Kind, ref.Name)})
}
