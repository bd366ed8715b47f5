package limit

import "fmt"

// Ceiling is what limits the nodes of the whole cluster, of all pools together (K-53). The soft limit, --max-nodes,
// bounds what is launched for pods and for replicas. A replacement may go above it while what it replaces is still
// there. The hard one, --max-node-claims-hard, bounds NodeClaims, and replacements too. Nothing is removed for either.
// The zero value is no limit.
type Ceiling struct {
	Most int64 // the soft limit, 0 for none
	Used int64 // NodeClaims, joined or not, and nodes without one, of whatever program

	HardMost int64 // the hard limit, 0 for none
	Claims   int64 // NodeClaims that exist, of whatever program; counted with a hard limit only

	Unknown string // why the hard limit is not known, so that nothing may be launched; "" when it is
}

// Left returns how many more nodes for pods and replicas both limits admit, or [None] when they admit any number.
func (c Ceiling) Left() int64 {
	soft, hard := None, c.LeftHard()
	if c.Most != 0 {
		soft = max(0, c.Most-c.Used)
	}
	if soft == None || hard != None && hard < soft {
		return hard
	}
	return soft
}

// LeftHard returns how many more NodeClaims the hard limit admits, whatever they are for, or [None] when there is
// none.
func (c Ceiling) LeftHard() int64 {
	switch {
	case c.Unknown != "":
		return 0
	case c.HardMost == 0:
		return None
	}
	return max(0, c.HardMost-c.Claims)
}

// Plus returns the ceiling with more claims and nodes counted.
func (c Ceiling) Plus(nodes int64) Ceiling {
	c.Used += nodes
	c.Claims += nodes
	return c
}

// Set reports whether there is a limit.
func (c Ceiling) Set() bool { return c.Most != 0 || c.HardMost != 0 || c.Unknown != "" }

// Full reports whether nothing more may be launched for pods, and whether it is the hard limit that says so.
func (c Ceiling) Full() (full, hard bool) { return c.Left() == 0, c.LeftHard() == 0 }

// The flags that set the limits of the whole cluster.
const (
	FlagMaxNodes      = "max-nodes"
	FlagMaxClaimsHard = "max-node-claims-hard"
)

// Flag returns the flag that set the limit which [Ceiling.Text] is about.
func (c Ceiling) Flag() string {
	if _, hard := c.Full(); hard || c.Most == 0 {
		return FlagMaxClaimsHard
	}
	return FlagMaxNodes
}

// Text says how full the cluster is, by the limit that is reached or, if none is, by the soft one, for events and
// tables: "nodes 10 of 10 in the whole cluster (--max-nodes)".
func (c Ceiling) Text() string {
	if c.Unknown != "" {
		return c.Unknown
	}
	if c.Flag() == FlagMaxClaimsHard {
		return fmt.Sprintf("NodeClaims %d of %d in the whole cluster (--%s)", c.Claims, c.HardMost, c.Flag())
	}
	return fmt.Sprintf("nodes %d of %d in the whole cluster (--%s)", c.Used, c.Most, c.Flag())
}
