// Package pack places pending pods: first on capacity that exists or is on its way, then on nodes it plans (P-23).
//
// It works by shapes. Pods that ask for the same are placed one after the other, the largest first, and what one of
// them found out about a bin (a node, existing or planned) need not be asked again by the next: a bin only fills up,
// so most refusals are final. A planned node is not an instance type but the set of all offerings that still fit, as
// a bit set ordered by price; every pod placed on it narrows the set, and in the end all that is left goes on the
// claim (P-24).
//
// Start at [Solve]. The package decides nothing about disruption, reads nothing but its input and imports the
// standard library only.
package pack
