// Package whatif plans for objects that nobody has applied (U-03). Manifests of pools, node classes and workloads
// become a snapshot of a cluster, and a running Joiner's engine plans for it. Nothing is written, and no cluster is
// asked.
//
// It also foretells a change of these objects. It plans for both states, and package foretell carries the plans out in
// memory.
//
// It does what an API server does to objects, as far as planning depends on it: definitions fill in defaults and
// refuse, workloads become pods, limits become requests. docs/simulate.md says what is left out.
package whatif
