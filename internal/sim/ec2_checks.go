package sim

import (
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/sim/ec2cloud"
)

// Names of the checks for worlds with EC2, as in docs/invariants.md.
const (
	checkWritten = "launch-written"
	checkTime    = "launch-in-time"
)

// This file checks machines of launches that serve several claims (E-36 to E-38); claims name their machines. Until
// then a machine is attributed to a claim that waits for a machine of its launch. A double belongs to no claim, and
// has to be gone at the end.

// claimed finds the claim for a new machine: one that waits for a machine of its launch, by its name if the machine
// bears one. It returns nil for a double.
func (w *World) claimed(m *cloud.Machine) *karpenterv1.NodeClaim {
	var found *karpenterv1.NodeClaim
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		has := w.checks.machines[string(claim.UID)]
		if found != nil || claim.Annotations[launchid.Key] != m.Launch || m.Launch == "" ||
			m.ClaimName != "" && m.ClaimName != claim.Name ||
			has != nil && w.cloud.Exists(has) || claim.Status.ProviderID != "" {
			return
		}
		found = claim
	})
	return found
}

// checkNamed is E-38 and P-32: a claim never changes the machine that it names, and no two claims name the same one.
func (w *World) checkNamed(e apiserver.Event, claim *karpenterv1.NodeClaim) {
	id := claim.Status.ProviderID
	before := ""
	if old, _ := e.Old.(*karpenterv1.NodeClaim); old != nil {
		before = old.Status.ProviderID
	}
	if id == before || isOther(claim) {
		return
	}
	if before != "" {
		w.fail(checkOneMachine, "claim %s names machine %q, and has named %s", claim.Name, id, before)
	}
	w.server.All(claim, func(o client.Object) {
		if other := o.(*karpenterv1.NodeClaim); other.UID != claim.UID && other.Status.ProviderID == id {
			w.fail(checkOneMachine, "claims %s and %s both name machine %s", claim.Name, other.Name, id)
		}
	})
	if w.account == nil {
		return
	}
	for _, m := range w.cloud.Machines() {
		switch {
		case m.ProviderID == id:
			if old := w.checks.machines[m.ClaimUID]; old == m && m.ClaimUID != string(claim.UID) {
				delete(w.checks.machines, m.ClaimUID)
			}
			m.ClaimUID, m.ClaimName = string(claim.UID), claim.Name
			w.checks.machines[m.ClaimUID] = m
		case m.ClaimUID == string(claim.UID): // the double
			m.ClaimUID, m.ClaimName = "", ""
		}
	}
}

// checkMachineOf finds the claim for a new machine. It fails if the launch brings more machines than were requested
// although EC2 honours client tokens (E-36).
func (w *World) checkMachineOf(m *cloud.Machine) {
	count, _, ours := launchid.ID(m.Launch).Parse()
	if !ours {
		w.fail(checkOneMachine, "machine %s has launch %q, which is none of ours", m.ProviderID, m.Launch)
	}
	w.checks.brought[m.Launch]++
	if n := w.checks.brought[m.Launch]; n > count && w.account.Weather().Tokens != string(ec2test.TokenIgnore) {
		w.fail(checkOneMachine, "launch %s for %d claims brings machine %s, its %d.", m.Launch, count, m.ProviderID, n)
	}
	if len(w.checks.intended[m.Launch]) == 0 {
		w.fail(checkWritten, "launch %s brings machine %s, and was never written on a claim", m.Launch, m.ProviderID)
	}
	if claim := w.claimed(m); claim != nil {
		m.ClaimUID, m.ClaimName = string(claim.UID), claim.Name
	}
}

// checkSpared is E-37: a machine that no claim names is ended only if enough remain for the claims that wait for one
// of its launch.
func (w *World) checkSpared(m *cloud.Machine) {
	named, waiting := map[string]bool{}, 0
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		named[claim.Status.ProviderID] = true
		if claim.Status.ProviderID == "" && claim.DeletionTimestamp == nil &&
			claim.Annotations[launchid.Key] == m.Launch {
			waiting++
		}
	})
	if named[m.ProviderID] {
		return
	}
	left := 0
	for _, other := range w.cloud.Machines() {
		if other.Launch == m.Launch && other.GoneAt.IsZero() && !named[other.ProviderID] {
			left++
		}
	}
	if left < waiting {
		w.fail(checkMachine, "machine %s of launch %s is ended, and %d are left for %d claims that wait", m.ProviderID,
			m.Launch, left, waiting)
	}
}

// noteLaunch records the launch that a claim names.
func (w *World) noteLaunch(claim *karpenterv1.NodeClaim) {
	launch := claim.Annotations[launchid.Key]
	if launch == "" || isOther(claim) {
		return
	}
	if w.checks.intended[launch] == nil {
		w.checks.intended[launch] = map[types.UID]bool{}
	}
	w.checks.intended[launch][claim.UID] = true
}

// checkInTime is L-14: no machine is requested, by the clock of the process, after the deadlines on the claims of the
// launch that still wait. Earlier requests may land later: EC2 knows no deadlines, and their machines are collected.
func (w *World) checkInTime(c ec2cloud.Call) {
	if !c.Makes {
		return
	}
	now, late, name := w.clock().Add(w.running.line.replica.skew), time.Duration(0), ""
	inTime := false
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if claim.Annotations[launchid.Key] != c.Subject || claim.Status.ProviderID != "" {
			return
		}
		text, _, _ := strings.Cut(claim.Annotations[karpenterv1.LaunchUntilAnnotationKey], " ")
		until, err := time.Parse(time.RFC3339, text)
		if err == nil && w.limited(claim) && now.After(until.Add(time.Second)) {
			late, name = now.Sub(until), claim.Name
			return
		}
		inTime = true
	})
	if name != "" && !inTime {
		w.fail(checkTime, "launch %s is asked for %s after the time that claim %s has for it", c.Subject, late, name)
	}
}

// limited reports whether the claim's pool has had a hard limit since the running step looked; other claims have no
// deadline.
func (w *World) limited(claim *karpenterv1.NodeClaim) bool {
	pool := w.poolOf(claim)
	if pool == nil {
		return false
	}
	_, most := w.checks.since("hard "+string(pool.UID), w.running.since-viewFor)
	return most != math.MaxInt64
}

// namedBy reports whether a claim names a machine.
func namedBy(claim *karpenterv1.NodeClaim, m *cloud.Machine) bool {
	return claim.Status.ProviderID == m.ProviderID
}
