package system

import (
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// Requests counts API requests by verb and resource, such as "patch nodeclaims.karpenter.sh/status".
type Requests map[string]int

// Total returns the number of all requests.
func (r Requests) Total() int {
	sum := 0
	for _, n := range r {
		sum += n
	}
	return sum
}

// Lower bounds on the requests of a controller. No controller is known to reach them.
const (
	// LeastUp are for a node: create its NodeClaim, create the Node (which on KWOK the controller does), write down
	// which instance it is, label the Node and take its taint off, write down that it is initialized.
	LeastUp = 5
	// LeastDown are for a node: taint it, delete its NodeClaim, delete the Node, and take the finalizer off both.
	// Evictions of pods come on top.
	LeastDown = 5
)

// countRequests counts a user's requests in each phase, from the audit log. Watches do not count: they depend on the
// process, not on nodes.
func countRequests(log, user string, phases []Phase) error {
	for i := range phases {
		phases[i].Requests = Requests{}
	}
	return cluster.ReadAudit(log, func(e cluster.Event) {
		if e.User != user || e.Verb == "watch" || e.Resource == "" {
			return
		}
		for _, p := range phases {
			if !e.ReceivedAt.Before(p.from) && e.ReceivedAt.Before(p.to) {
				kind := e.Kind()
				p.Requests[kind.Verb+" "+kind.Resource]++
			}
		}
	})
}
