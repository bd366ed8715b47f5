package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RepairPolicy says when a node counts as broken for good, and how to repair it (K-49).
type RepairPolicy struct {
	// ConditionType and ConditionStatus are the node condition that means trouble.
	ConditionType   corev1.NodeConditionType
	ConditionStatus corev1.ConditionStatus
	// Reason is a regular expression for the condition's reason; "" matches the reasons that no other policy with this
	// condition and status matches.
	Reason string
	// Toleration is how long the condition may last before the repair.
	Toleration time.Duration
	// TerminationGracePeriod bounds the drain of the broken node. nil leaves it to the claim. 0 means no drain, since
	// nothing on the node would answer. A policy that reboots must have one: pods that have not gone by then stay
	// through the reboot.
	TerminationGracePeriod *time.Duration
	// Priority, from 0 to 100, decides which of several broken nodes of a pool goes first: the highest.
	Priority int
	// Reboot reboots the machine instead of replacing it; only a [Rebooter] can.
	Reboot bool
}

// maxPriority is the highest priority of a policy.
const maxPriority = 100

// Rebooter is a Provider that can reboot machines, which keeps their disks. Other providers replace machines.
type Rebooter interface {
	Provider
	// Reboot asks for a reboot of a machine, and does not wait for it. If an answer was lost, another call for the
	// same operation causes no second reboot, as far as the cloud can tell. Errors: [ErrNotFound], [ErrThrottled],
	// [*RebootError] when asking again is useless.
	Reboot(ctx context.Context, providerID, operation string) error
}

// CanReboot reports whether a provider can reboot machines.
func CanReboot(p Provider) bool {
	_, can := p.(Rebooter)
	return can
}

// RebootError means that a machine is not rebooted, however often the caller asks.
type RebootError struct{ Message string }

// Error returns the message.
func (e *RebootError) Error() string { return "the reboot is refused: " + e.Message }

// CheckRepairPolicies checks the repair policies of a provider. The error names each wrong field, its value and what
// is allowed.
func CheckRepairPolicies(p Provider) error {
	var failures []error
	seen := map[string]bool{}
	for i, policy := range p.RepairPolicies() {
		at := fmt.Sprintf("provider %s: repair policy %d (%s=%s)", p.Name(), i+1, policy.ConditionType,
			policy.ConditionStatus)
		for _, problem := range problemsOf(policy, CanReboot(p)) {
			failures = append(failures, fmt.Errorf("%s: %s", at, problem))
		}
		key := fmt.Sprintf("%s=%s %s", policy.ConditionType, policy.ConditionStatus, policy.Reason)
		if seen[key] {
			failures = append(failures,
				fmt.Errorf("%s: reason %q has a policy already; want one for each condition, status and reason",
					at, policy.Reason))
		}
		seen[key] = true
	}
	return errors.Join(failures...)
}

// problemsOf returns what is wrong with a policy by itself.
func problemsOf(policy RepairPolicy, reboots bool) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if policy.ConditionType == "" {
		add(`condition type is ""; want the type of a node condition`)
	}
	switch policy.ConditionStatus {
	case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
	default:
		add("condition status is %q; want True, False or Unknown", policy.ConditionStatus)
	}
	if _, err := regexp.Compile(policy.Reason); err != nil {
		add("reason is %q; want a regular expression of Go: %v", policy.Reason, err)
	}
	if policy.Toleration <= 0 {
		add("toleration is %s; want more than 0s", policy.Toleration)
	}
	if policy.Priority < 0 || policy.Priority > maxPriority {
		add("priority is %d; want 0 to %d", policy.Priority, maxPriority)
	}
	switch grace := policy.TerminationGracePeriod; {
	case grace != nil && *grace < 0:
		add("termination grace period is %s; want 0s or more", *grace)
	case grace == nil && policy.Reboot:
		add("termination grace period is not set; want 0s or more, since the drain before a reboot has to end")
	}
	if policy.Reboot && !reboots {
		add("action is reboot; want replace, since this provider cannot reboot machines")
	}
	return list
}
