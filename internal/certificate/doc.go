// Package certificate makes a webhook's own certificates and renews them while it runs (X-12, V-20). It needs no other
// program and no restart, and no request fails during a renewal.
//
// A [State] is shared by all replicas of a webhook, in one Secret. It holds the served pair of certificate and key,
// perhaps the next pair, and the authorities of both and of earlier pairs. [State.Advance] computes the next state
// from the time and from what is published. It is pure, apart from new keys. A renewal takes three steps. Each is
// written before the next begins:
//
//  1. the next pair is made, and its authority is added to the others;
//  2. every [Target], an object whose caBundle the API server trusts, was seen to hold that authority;
//  3. a while later, when API servers have had time to learn of it, the next pair is served.
//
// An authority leaves the bundle only after it has expired. So a replica that learns late of step 3 is trusted all
// along. Each authority signs one certificate; its key is never stored.
//
// [Keeper.Step] does the work of one replica: start there. It reads the targets before the Secret, and writes both
// with an optimistic lock. So it never writes a target from an older Secret than the last writer used, however long a
// replica sleeps between its calls.
//
// [Given] does the same for certificates that somebody else makes and renews. Each replica has its own files.
//
// The package starts no goroutine and reads no clock: the program calls Step every [Terms.Every].
package certificate
