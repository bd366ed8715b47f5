package conformance

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// claim judges a NodeClaim. An existing NodePool must own it, and what it asks for and what it got must lie within the
// policy.
func (l *look) claim(claim *karpenterv1.NodeClaim) {
	if claim.DeletionTimestamp != nil {
		return
	}
	l.seen(NodeClaim, claim.Name)
	if !l.owned(claim) {
		l.add(Finding{NodeClaim, claim.Name, NotConforming, HandMade, "metadata.ownerReferences",
			"delete it: no NodePool that exists is its owner by uid, so no pool made it"})
	}
	set := folded(claim.Spec.Requirements, nil)
	for allowed := range l.allowed.All() {
		l.asked(claim, allowed, set)
	}
	l.classRef(NodeClaim, claim.Name, "spec.nodeClassRef", claim.Spec.NodeClassRef)
	l.image(claim)
}

// owned reports whether an existing NodePool owns the claim. It compares UIDs, not names: anybody can write names.
func (l *look) owned(claim *karpenterv1.NodeClaim) bool {
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == NodePool && l.pools[owner.UID] {
			return true
		}
	}
	return false
}

// asked judges what a claim says about one label of the policy: in its requirements, and in its labels, which show
// what it got.
func (l *look) asked(claim *karpenterv1.NodeClaim, allowed fold.Allowed, set fold.Set) {
	key := allowed.Key()
	_, labelled := label(claim.Labels, key)
	switch {
	case set.Holds(key):
		if has := set.Get(key); has.Empty() || !within(allowed, has) {
			state, cause := l.byAge(claim, HandMade)
			l.add(Finding{NodeClaim, claim.Name, state, cause, "spec.requirements",
				fmt.Sprintf("asks for %s, the policy allows %s", describe(has), describe(allowed))})
			l.astray(claim, key, state, cause)
			return
		}
	case !labelled && !allowed.AllowsAbsent():
		state, cause := l.byAge(claim, HandMade)
		l.add(Finding{NodeClaim, claim.Name, state, cause, "spec.requirements",
			fmt.Sprintf("says nothing of %s, the policy allows %s", key, describe(allowed))})
		l.astray(claim, key, state, cause)
	}
	if !labelled {
		return
	}
	if message, outside := l.label(claim.Labels, allowed); outside {
		state, cause := NotConforming, l.gotElse(claim, allowed)
		if !set.Holds(key) {
			state, cause = l.byAge(claim, HandMade)
		}
		l.add(Finding{NodeClaim, claim.Name, state, cause, labelField(key), message})
		l.astray(claim, key, state, cause)
	}
}

// gotElse returns why a claim asks for what the policy allows, but carries a label that the policy does not allow. The
// node's label was written from the machine itself. If both labels agree, the cloud gave another machine; otherwise
// somebody changed one of them.
func (l *look) gotElse(claim *karpenterv1.NodeClaim, allowed fold.Allowed) Cause {
	for i := range l.Objects.Nodes {
		node := &l.Objects.Nodes[i]
		if node.Spec.ProviderID != claim.Status.ProviderID || claim.Status.ProviderID == "" {
			continue
		}
		if _, outside := l.label(node.Labels, allowed); !outside {
			return WrittenByOther
		}
	}
	return CloudDiffers
}

// astray remembers which label of a claim is outside of the policy and why, so that its node gets the same cause. A
// claim without a machine has no node to look it up.
func (l *look) astray(claim *karpenterv1.NodeClaim, key fold.Key, state State, cause Cause) {
	id := claim.Status.ProviderID
	if l.strays[id] == nil {
		l.strays[id] = map[fold.Key]Finding{}
	}
	l.strays[id][key] = Finding{State: state, Cause: cause}
}

// image judges the image that the machine was started from.
func (l *look) image(claim *karpenterv1.NodeClaim) {
	id := claim.Status.ImageID
	if id == "" || l.Memory.Images == nil || l.Memory.Images[id] {
		return
	}
	f := Finding{
		NodeClaim, claim.Name, NotConforming, CloudDiffers, "status.imageID",
		fmt.Sprintf("is %s, which the provider did not give", id),
	}
	if claim.CreationTimestamp.Time.Before(l.Memory.Began) {
		f.State, f.Cause = NotKnown, Unclear
		f.Message = fmt.Sprintf("is %s: the claim is older than what the operator remembers of images", id)
	}
	l.add(f)
}

// node judges a node that an autoscaler made. An existing claim must have its machine, and its labels must lie within
// the policy. Nodes without Karpenter's label and without a claim belong to others, such as a CAPI NodePool.
func (l *look) node(node *corev1.Node) {
	if node.DeletionTimestamp != nil {
		return
	}
	claim := l.claims[node.Spec.ProviderID]
	_, pooled := node.Labels[karpenterv1.NodePoolLabelKey]
	if claim == nil && !pooled {
		return
	}
	l.seen(Node, node.Name)
	if claim == nil {
		f := Finding{Node, node.Name, NotConforming, HandMade, "spec.providerID",
			"find out who made it: no NodeClaim has its machine, though it carries the label of a pool"}
		if l.young(node) {
			f.State, f.Cause = NotKnown, Unclear
		}
		l.add(f)
	}
	registered := claim == nil || node.Labels[karpenterv1.NodeRegisteredLabelKey] == "true"
	for allowed := range l.allowed.All() {
		l.carried(node, claim, allowed, registered)
	}
}

// carried judges one label of a node. If the claim's label is outside of the policy too, the finding gets the claim's
// cause.
func (l *look) carried(node *corev1.Node, claim *karpenterv1.NodeClaim, allowed fold.Allowed, registered bool) {
	key := allowed.Key()
	if _, found := label(node.Labels, key); !found && !registered {
		return // Karpenter writes the labels when the node registers
	}
	message, outside := l.label(node.Labels, allowed)
	if !outside {
		return
	}
	f := Finding{Node, node.Name, NotConforming, WrittenByOther, labelField(key), message}
	if claim == nil {
		f.State, f.Cause = l.byAge(node, HandMade)
	} else if stray, found := l.strays[node.Spec.ProviderID][key]; found {
		f.State, f.Cause = stray.State, stray.Cause
	}
	l.add(f)
}

// label judges one label of a machine. The second result is false if it is as the policy wants it.
func (l *look) label(labels map[string]string, allowed fold.Allowed) (string, bool) {
	value, found := label(labels, allowed.Key())
	switch {
	case found && !allowed.Has(value):
		return fmt.Sprintf("is %q, the policy allows %s", value, describe(allowed)), true
	case !found && !allowed.AllowsAbsent():
		return fmt.Sprintf("is missing, the policy allows %s", describe(allowed)), true
	}
	return "", false
}

func labelField(key fold.Key) string { return fmt.Sprintf("metadata.labels[%s]", key) }
