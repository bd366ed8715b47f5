package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// This file records on a claim of a hard-limited pool until when its launch may land, and which process launches it.
// The record is written before the launch, and never onto a claim that is being deleted. So the record of a deleted
// claim is final. The claim keeps its finalizer, and with it its slot, until no launch can land any more and the
// provider lists none. It ends sooner if it is proved that no instance exists.

// several is the holder when more than one process may have a launch under way.
const several = "several"

// leastLeft is the minimum time left in a record for another launch to rely on it.
const leastLeft = 20 * time.Second

// launchRecord is the record on a claim.
type launchRecord struct {
	until  time.Time
	holder string
}

func (r launchRecord) String() string { return r.until.UTC().Format(time.RFC3339) + " " + r.holder }

// recordOf reads the record. A record with an invalid edit is found but not valid: its end is unknown.
func recordOf(claim *karpenterv1.NodeClaim) (r launchRecord, found, valid bool) {
	text, found := claim.Annotations[karpenterv1.LaunchUntilAnnotationKey]
	until, holder, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339, until)
	return launchRecord{at, holder}, found, err == nil && holder != ""
}

// record makes sure that the claim has a record of until when its launch may land, and returns that time. most is what
// the sight allows.
func (c *Controller) record(ctx context.Context, w *work, most time.Time) (bool, time.Time, error) {
	known, found, valid := recordOf(w.claim)
	now, holder := c.config.Now(), c.config.Holder
	if valid && (known.holder == holder || known.holder == several) && known.until.Sub(now) >= leastLeft {
		return true, earlier(known.until, most), nil
	}
	next := launchRecord{most.Truncate(time.Second), holder}
	othersMay := found && (!valid || known.holder != holder && now.Before(known.until.Add(provider.ClockSkew)))
	if holder == "" || othersMay {
		next.holder = several
	}
	if known.until.After(next.until) {
		next.until = known.until
	}
	change := patch.LaunchUntil(w.claim, karpenterv1.LaunchUntilAnnotationKey, next.String())
	if err := c.config.Client.Patch(ctx, w.claim, change); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, time.Time{}, nil
		}
		return false, time.Time{}, fmt.Errorf("writing onto NodeClaim %s until when its launch may land: %w",
			w.claim.Name, err)
	}
	return true, earlier(next.until, most), nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// recordEnds returns when the provider's list certainly shows every launch for a deleted claim. It is unknown for a
// claim without a record.
func recordEnds(claim *karpenterv1.NodeClaim) (time.Time, bool) {
	known, found, valid := recordOf(claim)
	if !found {
		return time.Time{}, false
	}
	if !valid { // edited by hand: no launch rests on a sight from after the deletion
		known.until = claim.DeletionTimestamp.Add(provider.LaunchFor + provider.ClockSkew)
	}
	return known.until.Add(provider.ClockSkew + provider.ListLag), true
}

// provedNone reports whether a deleted claim certainly has no machine. The provider has refused it, only this process
// ever launched for it, and each launch was answered. A refusal alone proves nothing: an earlier launch whose answer
// was lost may land after it.
func (c *Controller) provedNone(claim *karpenterv1.NodeClaim) bool {
	known, found, valid := recordOf(claim)
	onlyWe := valid && known.holder == c.config.Holder
	if !found {
		onlyWe = claim.CreationTimestamp.After(c.began())
	}
	_, refused := c.attempts.refusal(claim.UID)
	return refused && onlyWe && c.attempts.allAnswered(claim.UID)
}
