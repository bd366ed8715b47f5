package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// passedOverRule: a pod is not placed again on a node that kube-scheduler has passed over for it. It is about the
// pod, not the shape: others of the shape may come, so it never refuses for good. Such pods come one by one
// (runClass).
type passedOverRule struct {
	anyOffer
	anyPool
	untied
	unexplained // the pool that might launch says what it has against the pod
}

func (passedOverRule) reads() []string { return nil }

func (passedOverRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if passedOver(n, a.pods[0]) {
		return topology.Now
	}
	return topology.Yes
}

func (passedOverRule) placedOn(*solver, *existing, *attempt) {}

func passedOver(n *existing, pod *cluster.Pod) bool { return pod.IsPassedOver(n.node.Name) }

// comesAlone reports whether a pod must be in no group, although no rule ties its shape.
func comesAlone(pod *cluster.Pod) bool { return pod.PassedOver != "" }
