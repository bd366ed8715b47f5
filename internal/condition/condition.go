// Package condition reads and writes the status conditions of our API objects (V-11). It decides nothing and writes to
// no API server. It changes a list in memory and reports whether the list is now different, so that callers can skip a
// patch that would change nothing.
package condition

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Value is the desired state of one condition.
type Value struct {
	Type    string
	Status  metav1.ConditionStatus
	Reason  string // one word; if empty, Type counts: the CRD of NodePool requires one
	Message string
}

// True builds a value with status True.
func True(kind, reason, message string) Value {
	return Value{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False builds a value with status False.
func False(kind, reason, message string) Value {
	return Value{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown builds a value with status Unknown.
func Unknown(kind, reason, message string) Value {
	return Value{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Set puts a value into the list and reports whether the list changed. The transition time changes only with the
// status (Kubernetes' rule). A new generation is a change: readers compare it to see whether the value is current.
func Set(list *[]karpenterv1.Condition, generation int64, value Value, now time.Time) bool {
	if value.Reason == "" {
		value.Reason = value.Type
	}
	for i := range *list {
		if (*list)[i].Type == value.Type {
			return update(&(*list)[i], generation, value, now)
		}
	}
	*list = append(*list, karpenterv1.Condition{
		Type: value.Type, Status: value.Status, Reason: value.Reason, Message: value.Message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
	return true
}

func update(known *karpenterv1.Condition, generation int64, value Value, now time.Time) bool {
	if known.Status == value.Status && known.Reason == value.Reason && known.Message == value.Message &&
		known.ObservedGeneration == generation {
		return false
	}
	if known.Status != value.Status {
		known.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	}
	known.Status, known.Reason, known.Message, known.ObservedGeneration = value.Status, value.Reason, value.Message,
		generation
	return true
}

// Clear removes a condition from the list and reports whether it was there.
func Clear(list *[]karpenterv1.Condition, kind string) bool {
	for i := range *list {
		if (*list)[i].Type == kind {
			*list = append((*list)[:i:i], (*list)[i+1:]...)
			return true
		}
	}
	return false
}

// Get returns the condition of that type, and whether it exists.
func Get(list []karpenterv1.Condition, kind string) (karpenterv1.Condition, bool) {
	for _, c := range list {
		if c.Type == kind {
			return c, true
		}
	}
	return karpenterv1.Condition{}, false
}

// IsTrue reports whether the condition exists with status True.
func IsTrue(list []karpenterv1.Condition, kind string) bool {
	c, found := Get(list, kind)
	return found && c.Status == metav1.ConditionTrue
}

// Since returns when the condition got its current status, and false when there is no such condition.
func Since(list []karpenterv1.Condition, kind string) (time.Time, bool) {
	c, found := Get(list, kind)
	return c.LastTransitionTime.Time, found
}
