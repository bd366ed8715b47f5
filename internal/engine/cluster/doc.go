// Package cluster is the picture of a cluster that planning works on: pods, nodes, pools and what they may launch,
// as small values of our own instead of API objects.
//
// A [Snapshot] is immutable, and so is all that it points to: the store that makes snapshots builds new values for
// what has changed and shares the rest, so two snapshots that differ in one pod share everything else. Readers may
// keep a snapshot as long as they like. Its lists are in a canonical order, so that planning is a function of the
// cluster and not of the order in which events came in (P-20).
//
// What a pod asks for is its [Shape]. Pods that ask for the same share one Shape (see [Shapes]), which lets planning
// work by groups: whatever is found out for a shape holds for each of its pods.
//
// The package imports the standard library only. It decides nothing.
package cluster
