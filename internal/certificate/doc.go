// Package certificate gives a webhook certificates of its own and renews them while it runs (X-12, V-20): no other program
// makes them, nothing restarts, and no request fails for it.
//
// A [State] is what all replicas of a webhook share, in one Secret: the pair that is served, perhaps the pair that follows
// it, and the authorities of both and of what was served before. [State.Advance] says, from a time and from what is
// published, what the state is to become; it is pure but for new keys. A renewal takes three steps, each of them written
// before the next begins:
//
//  1. the next pair is made, and its authority is put beside the others;
//  2. every [Target], the objects whose caBundle the API server believes, was seen to hold that authority;
//  3. a while later, which leaves API servers the time to hear of it, the next pair is served.
//
// An authority leaves the bundle when it has expired and not before, so a replica that hears late of step 3 is trusted all
// along. Each authority signs one certificate; its key is never stored.
//
// [Keeper.Step] does the work of one replica: start there. It reads the targets before the Secret and writes both under an
// optimistic lock. So a target is never written from an older Secret than the one that it was written from before, however
// long a replica sleeps between its calls.
//
// [Given] does the same for certificates that somebody else makes and renews, in files that each replica has for itself.
//
// The package starts no goroutine and reads no clock: whoever serves calls Step every [Terms.Every].
package certificate
