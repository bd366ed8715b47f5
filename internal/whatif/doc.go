// Package whatif plans for objects that nobody has applied: manifests of pools, node classes and workloads become a picture
// of a cluster, and the engine that a running Joiner has plans for it (U-03). Nothing is written, and no cluster is asked.
//
// A change of these objects is foretold: both states are planned for, and package foretell carries the plans out in memory.
//
// What an API server does to objects is done here as far as planning sees it: definitions fill in defaults and refuse,
// workloads become pods, limits become requests. What is not done is said in docs/simulate.md.
package whatif
