// Package waves models what kube-scheduler makes of a plan (B-16, K-60). It places pods greedily: one after the other,
// on the node with the highest score of those that are open at that moment. A plan says where each pod could go; it
// does not say where the scheduler will put it. Pods that find their place taken need further nodes, and those come in
// further waves.
//
//	scheduler.go  which nodes take a pod, and which of them is chosen: filters and scores of the default profile
//	scores.go     the scores, with the scheduler's own arithmetic
//	ties.go       what constraints between pods allow
//	play.go       time: nodes open one after the other, pods are tried, what is left over is planned for again
//
// The scheduler's filters and scores are those of Kubernetes 1.36 without volumes, devices and images.
// localcluster/oracle compares them with its plugins. A play is a function of its arguments and its seed.
//
// Start at [Play].
package waves
