package view

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// ofPoolsThemselves returns the causes of pools that launch nothing, in the order of cause.PoolCodes. POOL stands for
// the pool, KEY for the label, the node class or the other pool.
func ofPoolsThemselves() []Entry {
	own := func(code cause.Code, says, byItself string, remedies ...string) Entry {
		return Entry{Code: code, Says: says, ByItself: byItself, Remedies: remedies, sentence: detail}
	}
	return []Entry{
		own(cause.ControllerSilent, "nobody leads: the Lease NAME has no holder, or was not renewed since TIME",
			"when a replica of Joiner leads", "start Joiner, or look at its log in the namespace of the Lease"),
		own(cause.BeingDeleted, "it is being deleted since TIME, and N NodeClaims of it are left",
			"when its nodes are gone",
			"look at what holds its nodes: joinerctl explain node", "apply it again under another name"),
		own(cause.KindNotServed, "nothing is planned for node classes of the kind KIND: served are KINDS", "",
			"name a node class of a kind that is served in spec.template.spec.nodeClassRef of a new NodePool",
			"leave the pool to the program that serves KEY"),
		own(cause.NodeClassMissing, "there is no KIND NAME", "when it is created",
			"apply it, or correct spec.template.spec.nodeClassRef of NodePool POOL"),
		own(cause.NodeClassNotReady, "KIND NAME is not Ready: REASON", "when it is Ready",
			"look at the conditions of KEY: kubectl describe"),
		own(cause.InvalidPool, "its specification cannot be understood: FIELD: what is allowed", "",
			"correct the field in NodePool POOL"),
		own(cause.NoInstanceTypes, "its requirements leave no instance type: LABEL=VALUES (N of N) with LABEL=VALUES "+
			"(N of N)", "",
			"allow more values of KEY in spec.template.spec of NodePool POOL"),
		own(cause.MinValuesUnmet, "minValues demands N values of LABEL, and its requirements leave N", "",
			"lower minValues of KEY in NodePool POOL, or widen its requirements",
			"start Joiner with --min-values-policy=BestEffort"),
		own(cause.LaunchesFail, "the provider refuses N of the N NodeClaims that it has: REASON: MESSAGE",
			"when the provider takes them",
			"correct what the provider names: a quota, a right, an image, a field of the node class"),
		own(cause.NodesNeverJoin, "machines are launched and do not join: NodeClaim NAME: MESSAGE",
			"when a node of it joins",
			"look at the console of a machine: user data, network, and the role by which its kubelet may join"),
		own(cause.LimitReached, "RESOURCE N of N (hard limit), and no replacement goes above it", goes,
			"raise KEY of NodePool POOL", "remove a node of the pool, or make room on one"),
		own(cause.ClusterLimitReached,
			"nodes N of N in the whole cluster (--max-nodes), which a replacement may go above, "+
				"or NodeClaims N of N (--max-node-claims-hard), and none does",
			goesAnywhere, raiseMaxNodes, freeAny),
		own(cause.ReplicasBelow, "replicas N, nodes N, and none is launched: REASON", "",
			"raise the limit on nodes of NodePool POOL, or lower its spec.replicas",
			"switch on the feature gate StaticCapacity, if it is off"),
		own(cause.MinNodesBelow, "min-nodes N, nodes N, and none is launched: REASON",
			"when the named limit allows it",
			"raise the named limit of NodePool POOL, or lower its annotation joiner.sh/min-nodes"),
		own(cause.StaticFull, "replicas N, nodes N", "", "to get more nodes: kubectl scale "+
			"nodepool POOL --replicas=N"),
		own(cause.Outweighed, "N pods could use it, and go to NodePool NAME (weight N over N)", "",
			"nothing to do, or raise spec.weight of NodePool POOL over that of KEY"),
		own(cause.NoDemand, "no waiting pod is planned onto it", "when a pod waits that it can take", nothing),
		own(cause.OtherController, "Karpenter leads: the Lease NAME is held by HOLDER", "",
			"look in Karpenter's log for why it launches nothing", "docs/takeover.md says how Joiner takes over"),
	}
}

// ofClaims returns the causes that hold a NodeClaim at its stage, in the order of cause.ClaimCodes. NAME stands for
// the claim.
func ofClaims() []Entry {
	own := func(code cause.Code, says, byItself string, remedies ...string) Entry {
		return Entry{Code: code, Says: says, ByItself: byItself, Remedies: remedies, sentence: detail}
	}
	return []Entry{
		own(cause.LaunchPending, "its machine was requested, and the provider has not answered yet",
			"when the provider answers; given up after --launch-timeout",
			"if it stays so, look at the events of NodeClaim NAME and at the log of Joiner's leader"),
		own(cause.NotRegistered, "its machine is launched, and has not joined",
			"when it joins; given up after --registration-timeout",
			"look at the console of the machine: user data, network, and the role by which its kubelet may join"),
		own(cause.NodeGone, "its node NAME is gone, and its machine runs without it",
			"when the kubelet joins again; given up after --registration-timeout",
			"delete the NodeClaim, or start the kubelet of the machine again"),
		own(cause.GivenUp, "it was given up: REASON", "when it is gone; its pods are planned for anew",
			"correct what is named; nothing to do if the next NodeClaim succeeds"),
		own(cause.VolumesAttached, "its pods are gone, and its machine waits: N volumes are still attached: NAMES",
			"when they are detached",
			"if it stays so, look at their VolumeAttachments and at the CSI driver that detaches them"),
		own(cause.MachineEnds, "its machine is being ended", "when the cloud says that it is gone", nothing),
		own(cause.ForeignFinalizer, "the finalizer NAME of another program keeps it", "when that program removes it",
			"look at the program that set the finalizer"),
	}
}

// Pool explains a pool. steps are what the engine and the pool's objects say, in any order. launches describes what
// the pool launches, "" for nothing.
func Pool(pool, launches string, steps []plan.Step) Explanation {
	order := cause.PoolCodes()
	place := func(s plan.Step) int {
		if i := slices.Index(order, s.Cause); i >= 0 {
			return i
		}
		return slices.Index(order, cause.LimitReached) // causes shared with pods come before limits
	}
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b plan.Step) int { return place(a) - place(b) })
	causes := make([]Cause, 0, len(sorted))
	for _, step := range sorted {
		c := about(pool, step)
		c.Object = Object{Kind: "NodePool", Name: pool}
		c.Text = strings.TrimPrefix(c.Text, "pool "+pool+": ")
		if step.Cause == cause.PoolNotReady { // the remedy for pods refers to this explanation
			c.Remedies = []string{"look at the conditions of NodePool " + pool +
				" and of its node class: kubectl describe"}
		}
		causes = append(causes, c)
	}
	bars := slices.IndexFunc(sorted, func(s plan.Step) bool {
		return s.Cause == cause.OtherController || place(s) < slices.Index(order, cause.LimitReached)
	})
	switch {
	case launches != "" && bars < 0:
		return Explanation{State: Coming, Text: launches, Also: causes}
	case launches != "": // what blocks planned launches counts first
		binding := causes[bars]
		causes = slices.Insert(slices.Delete(causes, bars, bars+1), 0, binding)
	}
	if len(causes) == 0 {
		return Explanation{State: Settled, Text: "nothing is known of it"}
	}
	e := Explanation{State: Held, Cause: &causes[0], Also: causes[1:]}
	switch e.Cause.Code {
	case cause.NoDemand, cause.Outweighed, cause.StaticFull:
		e.State = Settled
	}
	return e
}

// Limited returns the cause of a pool that a limit keeps from launching. step is what the pool says to a pod (see
// [engine.Limited]).
func Limited(pool string, step plan.Step) Cause {
	return *Pool(pool, "", []plan.Step{engine.Limited(step)}).Cause
}

// Claim explains a NodeClaim that is held at a stage. other is the NodeClaim that it waits for, or "".
func Claim(code cause.Code, text, name, other, pool string) Explanation {
	c := about(pool, plan.Step{Cause: code, Detail: text})
	c.Object, c.Text = Object{Kind: "NodeClaim", Name: name}, text
	for i, remedy := range c.Remedies {
		c.Remedies[i] = strings.NewReplacer("NAME", name, "CLAIM", other).Replace(remedy)
	}
	switch code { // the remedies for nodes refer to the claim
	case cause.NotInitialized:
		c.Remedies = []string{
			"look at the program that removes the startup taint, or at the driver that brings the resource",
		}
		c.ByItself = "when it is; given up after --initialization-timeout"
	case cause.Draining:
		c.Remedies = []string{"look at what the drain waits for: kubectl describe nodeclaim " + name}
	}
	e := Explanation{State: Coming, Cause: &c}
	switch code {
	case cause.LaunchesFail, cause.HardLimitNodes, cause.ForeignFinalizer:
		e.State = Held
	}
	return e
}
