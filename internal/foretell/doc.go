// Package foretell carries plans out on a copy of a cluster in memory, until nothing changes any more (U-03). It plans
// with the engine, on snapshots from the store that a running Joiner uses. The package itself plays everything else:
// the controllers, a cloud with its whole catalogue available, kubelets, and a kube-scheduler that follows the plan.
//
// It is pure: objects in, objects and a record of what happened out. A round is a step of the play, not a length of
// time. docs/simulate.md says what it does not play: changing prices and capacity, volumes created in a zone, the
// selectors of a node class, autoscalers, expiry.
//
//	stage.go    the copy
//	round.go    the order of things
//	machine.go  claims become nodes
//	pods.go     pods are placed and move
//	judge.go    what controllers write onto objects: drift, counts of PodDisruptionBudgets
package foretell
