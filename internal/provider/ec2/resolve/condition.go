package resolve

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// Types of conditions of an EC2NodeClass that this package decides, beside the common ones.
const (
	SubnetsReady              = "SubnetsReady"
	SecurityGroupsReady       = "SecurityGroupsReady"
	AMIsReady                 = "AMIsReady"
	InstanceProfileReady      = "InstanceProfileReady"
	CapacityReservationsReady = "CapacityReservationsReady"
	PlacementGroupReady       = "PlacementGroupReady"
)

// Reasons of conditions that are not True.
const (
	SubnetsNotFound             = "SubnetsNotFound"
	SecurityGroupsNotFound      = "SecurityGroupsNotFound"
	AMINotFound                 = "AMINotFound"
	AMIFamilyUnsupported        = "AMIFamilyUnsupported"
	AMIMinAgeInvalid            = "AMIMinAgeInvalid"
	RoleNotFound                = "RoleNotFound"
	Unauthorized                = "Unauthorized"
	Propagating                 = "Propagating"
	IAMNotReachable             = "IAMNotReachable"
	InstanceProfileNotFound     = "InstanceProfileNotFound"
	CapacityReservationNotFound = "CapacityReservationNotFound"
	PlacementGroupNotFound      = "PlacementGroupNotFound"
	VPCMismatch                 = "SecurityGroupSubnetVPCMismatch"
	// NotResolved is the reason of an Unknown condition if AWS could not be asked yet.
	NotResolved = "NotResolved"
	// SignatureRefused is the reason of an Unknown condition if the machine's clock is wrong (E-67).
	SignatureRefused = "SignatureRefused"
	// Stale is the reason of an Unknown condition if AWS could not be asked for more than 24 h.
	Stale = "Stale"
)

// staleFor is how long an answer counts after its refresh was due (E-03).
const staleFor = 24 * time.Hour

func met(kind, message string) karpenterv1.Condition {
	return karpenterv1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: message}
}

func unmet(kind, reason, message string) karpenterv1.Condition {
	return karpenterv1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func unknown(kind, reason, message string) karpenterv1.Condition {
	return karpenterv1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// said returns a condition of the class's status, and whether it is about the current generation.
func said(class *awsv1.EC2NodeClass, kind string) (condition karpenterv1.Condition, current bool) {
	for _, c := range class.Status.Conditions {
		if c.Type == kind {
			c.LastTransitionTime = metav1.Time{}
			return c, c.ObservedGeneration == class.Generation
		}
	}
	return karpenterv1.Condition{}, false
}

// old returns the condition with a note if its answer could not be refreshed, or Unknown if the answer is too old
// (E-03).
func old(c karpenterv1.Condition, b basis, now time.Time) karpenterv1.Condition {
	if b.failure == nil {
		return c
	}
	if c.Status == metav1.ConditionUnknown {
		return c
	}
	since := lastSeen{at: b.seen}
	if now.Sub(b.overdue) > staleFor {
		return unknown(c.Type, Stale, since.text(now, b.failure))
	}
	c.Message = joined(c.Message, since.text(now, b.failure))
	return c
}

// kept returns the condition of a part without an answer in this process. It is that of the class's status, if that is
// about the current class (E-03). started is when the process began to ask.
func kept(class *awsv1.EC2NodeClass, kind string, current bool, why *failure,
	started, now time.Time) karpenterv1.Condition {
	c, _ := said(class, kind)
	if !current || c.Type == "" || c.Status == metav1.ConditionUnknown {
		reason := NotResolved
		switch {
		case why.clock != "":
			reason = SignatureRefused
		case why.class == refusal.Rights:
			reason = Unauthorized
		}
		return unknown(kind, reason, fmt.Sprintf("not known yet, since AWS could not be asked: %s; it is tried again",
			why))
	}
	since, base := lastSeenIn(c.Message)
	if since.at.IsZero() {
		since = lastSeen{at: started, atLeast: true}
	}
	if now.Sub(since.at) > staleFor {
		return unknown(kind, Stale, since.text(now, why))
	}
	c.Message, c.ObservedGeneration = joined(base, since.text(now, why)), 0
	return c
}

func joined(message, more string) string {
	if message == "" {
		return more
	}
	return message + "; " + more
}

// lastSeen is when AWS last said something that still counts.
type lastSeen struct {
	at      time.Time
	atLeast bool // or earlier
}

const lastSeenPrefix = "last seen "

// text returns it for a message. It has the time, so that another process can continue from there.
func (l lastSeen) text(now time.Time, why *failure) string {
	ago, at := "", ", at "
	if l.atLeast {
		ago, at = "at least ", ", before "
	}
	return fmt.Sprintf("%s%s%s ago%s%s: %s", lastSeenPrefix, ago, age(now.Sub(l.at)), at,
		l.at.UTC().Format(time.RFC3339), why)
}

// lastSeenIn reads the output of text in a message, and returns the message without it. The time is zero when there is
// none.
func lastSeenIn(message string) (since lastSeen, base string) {
	i := strings.LastIndex(message, lastSeenPrefix)
	if i < 0 {
		return lastSeen{}, message
	}
	base = strings.TrimSuffix(message[:i], "; ")
	fields := strings.Fields(message[i:])
	for n, field := range fields[:len(fields)-1] {
		if field != "at" && field != "before" {
			continue
		}
		if at, err := time.Parse(time.RFC3339, strings.TrimSuffix(fields[n+1], ":")); err == nil {
			return lastSeen{at: at, atLeast: field == "before"}, base
		}
	}
	return lastSeen{}, base
}

// age returns a duration in minutes, from two hours on in hours: a message should not change more often than useful.
func age(d time.Duration) string {
	if d < 2*time.Hour {
		return fmt.Sprintf("%d min", max(0, int(d/time.Minute)))
	}
	return fmt.Sprintf("%d h", int(d/time.Hour))
}

// Ready returns the condition that sums up the others of a class: False when one is False, otherwise Unknown when one
// is Unknown. Its reason is that of the first such condition. Missing reservations do not count: machines can be
// launched without them (E-13).
func Ready(conditions []karpenterv1.Condition) karpenterv1.Condition {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		var messages []string
		reason := ""
		for _, c := range conditions {
			optional := c.Type == CapacityReservationsReady && c.Status == metav1.ConditionFalse
			if c.Type == karpenterv1.ConditionTypeReady || c.Status != status || optional {
				continue
			}
			if reason == "" {
				reason = c.Reason
			}
			messages = append(messages, c.Type+": "+c.Message)
		}
		if reason != "" {
			return karpenterv1.Condition{
				Type: karpenterv1.ConditionTypeReady, Status: status, Reason: reason,
				Message: strings.Join(messages, "; "),
			}
		}
	}
	return met(karpenterv1.ConditionTypeReady, "")
}
