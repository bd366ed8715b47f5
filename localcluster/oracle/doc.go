// Package oracle judges plans with kube-scheduler's own code (P-21). It takes a cluster as plain API objects, and a
// plan, which says which nodes come, which go, and which pod runs where. It binds the planned pods one by one: each
// binding has to pass the PreFilter and Filter of the scheduler's plugins, which are linked in from the release that
// this module depends on. It does not matter who makes the plans: the tests here use it for Joiner's engine, the
// benchmarks for other autoscalers as well.
//
// A plan is right when the pods can be bound in some order, since the scheduler retries what it could not place. The
// oracle tries a few sensible orders and some random ones (see orders in bind.go). Nodes of the plan exist from the
// start.
//
// The plugins are NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit,
// PodTopologySpread and InterPodAffinity. Those for volumes (VolumeBinding, VolumeZone, VolumeRestrictions,
// NodeVolumeLimits) and for devices (DynamicResources) are left out: they need the objects of storage and device
// drivers.
//
// It checks nothing else: no limits, no prices, and not whether a pod that was left out could have been placed. Start
// at [Oracle.Check]. The package cases, below this one, makes clusters and runs the engine on them.
package oracle
