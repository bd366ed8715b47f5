// Package world turns watch events into snapshots of the cluster. The [Store] takes API objects as they come in.
// [Store.Snapshot] returns an immutable [cluster.Snapshot], and planning works on that alone.
//
// # Ownership
//
// The Store owns the resource space and the table of shapes. All vectors and shapes of its snapshots refer to them,
// and nobody else adds to them. What a snapshot points to never changes: an event builds new values for what it
// touches, and the next snapshot shares all other values with the one before. The Store only reads API objects and
// keeps some of them. Callers must not change them, as with any object of an informer's cache.
//
// # The lock
//
// One mutex guards everything in the Store except the published snapshot, which is an atomic pointer. Methods that
// hold the mutex do no I/O. They call out only to Config.Now, to Config.Fleet and to the function of
// [Store.OnBinding]. Readers of an unchanged Store take no lock.
//
// # Versions
//
// The version counts changes that a snapshot can show. An event that planning cannot see, such as a node's heartbeat,
// does not change it. Two snapshots of one Store with the same version are the same pointer.
//
// # Order of events
//
// What the Store shows depends on the set of events it has seen, not on their order. The highest resource version of
// an object counts. A deletion is final for a UID. Pods, nodes and claims may come in any order; they are joined when
// their other half arrives. Order of arrival decides only for objects without a UID, or with resource versions that
// are not numbers.
//
// # Promises
//
// The applier tells the Store at once what it has written ([Store.Promise], [Store.Nominate]). So the next round of
// planning counts it before the watch shows it (P-23). A promise ends when the object or its deletion is seen, or
// after Config.PromiseTTL.
//
// Start reading at store.go; join.go says which node belongs to which claim.
package world
