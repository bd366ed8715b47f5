package whatif

import (
	"cmp"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Decides is who decides in a cluster where that is not Joiner, and what that says itself.
type Decides struct {
	// Program is ProgramKarpenter.
	Program string `json:"program"`
	// Event is its last event on the object; nil when there is none, or it was not read.
	Event *LastEvent `json:"event,omitempty"`
	// Unread says why no event was read; "" when it was looked for.
	Unread string `json:"unread,omitempty"`
}

// LastEvent is an event of the program that decides.
type LastEvent struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// At is when it was said last, as in the event.
	At string `json:"at,omitempty"`
}

// leading returns the controllers that lead by the world's leases, and those that no longer do.
func (w *World) leading() (leading, silent []Controller) {
	var in Surroundings
	for _, o := range w.objects {
		if lease, isLease := o.Object.(*coordinationv1.Lease); isLease &&
			lease.Name == cmp.Or(w.LeaseName, LeaseName) {
			in.Leases = append(in.Leases, *lease)
		}
	}
	return in.Controllers(w.podNamed, w.joinersPools(), w.now)
}

// Karpenter reports whether only Karpenter controls the cluster: it leads by its lease.
func (w *World) Karpenter() bool {
	leading, _ := w.leading()
	return len(leading) == 1 && leading[0].Program == ProgramKarpenter
}

// heading returns the line that says who controls the cluster, if that is another program.
func (e Explained) heading() string {
	if e.Decides == nil {
		return ""
	}
	return e.Decides.Program + " decides here. By the same objects Joiner would say:\n"
}

// writeEvent prints the last event of the program that controls the cluster.
func (e Explained) writeEvent(b *strings.Builder) {
	d := e.Decides
	switch {
	case d == nil:
	case d.Unread != "":
		fmt.Fprintf(b, "%s's own events were not read: %s\n", d.Program, d.Unread)
	case d.Event == nil:
		fmt.Fprintf(b, "%s has no event on it\n", d.Program)
	default:
		fmt.Fprintf(b, "%s's last event on it: %s: %s (%s)\n", d.Program, d.Event.Reason, d.Event.Message,
			cmp.Or(d.Event.At, "no time"))
	}
}
