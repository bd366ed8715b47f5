package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
)

// EventInstanceFailed is the event for an instance that ended before its node registered (E-45).
const EventInstanceFailed = "InstanceFailed"

// If instances keep failing because of what their class asks for, launches of the class pause (E-45).
const (
	failuresToPause = 3
	failuresWithin  = 10 * time.Minute
	firstPause      = 10 * time.Second
	longestPause    = 5 * time.Minute
)

// failing is what is known of the failed instances of a class.
type failing struct {
	at      []time.Time // of failures of the last ten minutes
	pause   time.Duration
	until   time.Time
	message string // of the last
}

// ended handles a machine that ended by itself. If its node never came, it sends an event to the claim. If EC2 ran out
// of capacity at the last moment, the pool counts as short.
func (p *Provider) ended(ctx context.Context, providerID string, why *machines.EndedError) {
	claims, err := p.config.Cluster.Claims(ctx)
	if err != nil || why.Reason == "" {
		return
	}
	i := slices.IndexFunc(claims, func(c *karpenterv1.NodeClaim) bool { return c.Status.ProviderID == providerID })
	if i < 0 || claims[i].Status.NodeName != "" || claims[i].DeletionTimestamp != nil || !p.firstEnd(providerID) {
		return
	}
	claim := claims[i]
	text := why.Reason + ": " + why.Message
	p.config.Told(Event{Claim: claim.Name, Reason: EventInstanceFailed,
		Message: fmt.Sprintf("instance %s ended before its node registered: %s", why.ID, text)})
	switch {
	case strings.HasPrefix(why.Reason, "Server.InsufficientInstanceCapacity"):
		if known, found := p.recall(providerID); found {
			p.shortages.Note(offering.Pool{Type: known.Type, Zone: known.Zone, CapacityType: known.CapacityType},
				p.config.Clock.Now())
			p.changed()
		}
	case strings.HasPrefix(why.Reason, "Client.") && !strings.HasPrefix(why.Reason, "Client.UserInitiated") &&
		!strings.HasPrefix(why.Reason, "Client.InstanceInitiated"):
		if class, err := p.config.Cluster.NodeClass(ctx, claim.Spec.NodeClassRef.Name); err == nil {
			p.failedOnce(class.UID, text)
		}
	}
}

// firstEnd reports whether the end of a machine was not reported yet, and notes it.
func (p *Provider) firstEnd(providerID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, told := p.ends[providerID]; told {
		return false
	}
	now := p.config.Clock.Now()
	for id, at := range p.ends {
		if now.Sub(at) > time.Hour {
			delete(p.ends, id)
		}
	}
	p.ends[providerID] = now
	return true
}

// failedOnce counts a failure of a class.
func (p *Provider) failedOnce(class types.UID, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Clock.Now()
	f := p.failing[class]
	f.at = slices.DeleteFunc(append(f.at, now), func(t time.Time) bool { return now.Sub(t) > failuresWithin })
	f.message = text
	if len(f.at) >= failuresToPause && now.After(f.until) {
		f.pause = min(max(2*f.pause, firstPause), longestPause)
		f.until = now.Add(f.pause)
	}
	if len(f.at) < failuresToPause {
		f.pause = 0
	}
	p.failing[class] = f
}

// Failing returns why a class must not launch until a time: its last instances failed by its own fault. message is ""
// for a class that may launch.
func (p *Provider) Failing(class types.UID) (message string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failing[class]
	if !p.config.Clock.Now().Before(f.until) {
		return "", time.Time{}
	}
	return fmt.Sprintf(
		"%d instances ended before their nodes registered, the last one by %s; nothing is launched until %s",
		len(f.at), f.message, f.until.UTC().Format(time.RFC3339)), f.until
}
