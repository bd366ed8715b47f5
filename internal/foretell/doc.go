// Package foretell carries plans out where nobody is hurt: on a copy of a cluster, in memory, until nothing changes any
// more (U-03). What plans is the engine, and what pictures the cluster is the store that a running Joiner has; this
// package plays the others: the controllers, a cloud that has everything in its catalogue, kubelets, and a
// kube-scheduler that follows the plan.
//
// It is pure: objects in, objects and a record of what happened out. A round is a step of that play and no length of
// time. What it does not play is said in docs/simulate.md: prices and capacity that change, volumes that are made in a
// zone, what selectors of a node class resolve to, autoscalers, expiry.
//
//	stage.go    the copy
//	round.go    the order of things
//	machine.go  claims become nodes
//	pods.go     pods are placed and move
//	judge.go    what controllers write onto objects: drift, counts of PodDisruptionBudgets
package foretell
