package history

import (
	"slices"
	"strings"
	"time"
)

// Filter selects records; unset fields select everything (U-25).
type Filter struct {
	Since, Until time.Time
	NodePool     string
	// Node is the name of a node or of its NodeClaim.
	Node string
	// Pod is namespace/name.
	Pod   string
	Cause string
	// Limit is how many records to return, newest first; 0 is all.
	Limit int
}

// Select returns the matching records, newest first.
func (f Filter) Select(records []Record) []Record {
	wanted := []Record{}
	for _, r := range slices.Backward(records) {
		if f.Limit > 0 && len(wanted) == f.Limit {
			break
		}
		if f.wants(r) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

func (f Filter) wants(r Record) bool {
	last := r.Time
	if r.Last.After(last) {
		last = r.Last
	}
	switch {
	case !f.Since.IsZero() && last.Before(f.Since), !f.Until.IsZero() && r.Time.After(f.Until):
		return false
	case f.NodePool != "" && r.NodePool != f.NodePool, f.Cause != "" && !strings.EqualFold(r.Cause, f.Cause):
		return false
	case f.Node != "" && r.Node != f.Node && r.NodeClaim != f.Node && !slices.Contains(r.Replaces, f.Node):
		return false
	}
	return f.Pod == "" || slices.Contains(r.PodNames, f.Pod)
}
