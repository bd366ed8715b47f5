// Package churn lets random users loose on a local cluster with Joiner in it: a real kube-apiserver, kube-scheduler
// and controller-manager, KWOK's machines, and the joiner binary. The users create, change and delete workloads of
// every kind of constraint, edit NodePools, delete nodes, and kill joiner. All steps are drawn from a seed before the
// run, so a seed always has the same steps.
//
// The users do not know where a pod can run. The judge asks kube-scheduler's own filters (package oracle) about the
// current cluster, with one more node of each kind that the NodePools may still launch. A pod that fits on one of
// those nodes is feasible, and must not stay pending for long. The other rules are in judge.go.
//
// All bounds are in machine time (package machinetime), which passes more slowly on a busy machine.
//
// Read script.go (what users do), workloads.go and pools.go (to what), act.go (how it is done), view.go (what is
// seen), could.go (which pods are feasible), judge.go and its neighbours (what is wrong), run.go (a seed from begin to
// end).
package churn
