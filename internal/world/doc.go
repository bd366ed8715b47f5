// Package world turns watch events into pictures of the cluster. The [Store] takes API objects as they come in,
// [Store.Snapshot] hands out an immutable [cluster.Snapshot], and planning works on that alone.
//
// # Ownership
//
// The Store owns the resource space and the table of shapes behind every vector and every shape of its snapshots;
// nobody else adds to them. What a snapshot points to is never changed afterwards: an event builds new values for
// what it touches, and the next snapshot shares all the others with the one before. API objects handed to the
// Store are only read, and some are kept: callers must not change them, as for any object of an informer's cache.
//
// # The lock
//
// One mutex guards everything in the Store but the published snapshot, which sits behind an atomic pointer. No
// method calls out while it holds the mutex: no I/O, no callback but Config.Now. Readers of an unchanged Store take
// no lock.
//
// # Versions
//
// The version counts changes that a snapshot can show. An event that changes nothing of what planning sees, such as
// a node's heartbeat, leaves it alone. Two snapshots of one Store with the same version are the same pointer.
//
// # Order of events
//
// What the Store shows is a function of the set of events it has seen, not of their order: of one object the
// highest resource version counts, a deletion is final for a UID, and pods, nodes and claims may come in any order
// and are joined when their other half arrives. Objects without a UID or with resource versions that are not
// numbers fall back to the order of arrival.
//
// # Promises
//
// What the applier has just written is told to the Store at once ([Store.Promise], [Store.Nominate]), so that the
// next round of planning counts it although the watch has not shown it yet (P-23). Promises end by themselves: when
// the object is seen, when its deletion is seen, or when Config.PromiseTTL has passed.
//
// Start reading at store.go; join.go says which node belongs to which claim.
package world
