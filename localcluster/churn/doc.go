// Package churn lets random users loose on a local cluster with Joiner in it: a real kube-apiserver, kube-scheduler
// and controller-manager, KWOK's machines, and the joiner binary. The users create, change and delete workloads of
// every kind of constraint, edit NodePools, delete nodes, and kill joiner. All that they do is drawn from a seed
// before the run: the same seed draws the same steps.
//
// Nothing is known beforehand about where a pod can run. The judge asks kube-scheduler's own filters (package oracle),
// about the cluster as it is at that moment and one more node of each kind that the NodePools may still launch. A pod
// that one of those nodes would hold is feasible, and must not stay pending for long. The other rules are in judge.go.
//
// A busy machine is allowed for by measuring it: all bounds are in machine time (package machinetime), which passes
// slower when the machine serves others.
//
// Read script.go (what users do), workloads.go and pools.go (to what), act.go (how it is done), view.go (what is
// seen), could.go (which pods are feasible), judge.go and its neighbours (what is wrong), run.go (a seed from begin to
// end).
package churn
