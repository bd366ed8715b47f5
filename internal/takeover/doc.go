// Package takeover says beforehand what changes when Joiner takes a cluster over from Karpenter (K-25), and what has to
// change before Karpenter gets it back (K-28). It judges objects that somebody else has read, plans with the engine, and
// writes nothing. [Checks] is the table of what is looked at; [Check] goes through it, and [Back] does for the way back.
package takeover
