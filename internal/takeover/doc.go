// Package takeover says in advance what changes when Joiner takes over a cluster from Karpenter (K-25), and what has
// to change before Karpenter gets it back (K-28). It judges objects that the caller has read, plans with the engine,
// and writes nothing. [Checks] is the table of checks and [Check] runs it; [Back] does the same for the way back.
package takeover
