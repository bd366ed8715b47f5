package provider

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotFound means that the machine is proved gone, or never existed.
var ErrNotFound = errors.New("instance not found")

// ErrNodeClassNotFound means that the node class a pool or claim names does not exist.
var ErrNodeClassNotFound = errors.New("node class not found")

// ErrThrottled means that the cloud accepts no more calls at the moment: ask again later.
var ErrThrottled = errors.New("throttled by the provider")

// maxOfferingsInMessage bounds the text of an [InsufficientCapacityError]; the value has all offerings.
const maxOfferingsInMessage = 5

// Offering identifies a way to buy an instance type.
type Offering struct {
	Type, Zone, CapacityType string
}

// String prints type/zone/capacity type.
func (o Offering) String() string { return o.Type + "/" + o.Zone + "/" + o.CapacityType }

// InsufficientCapacityError means that there is no machine for a claim. The caller should give up the claim and plan
// its pods again, without the offerings in Tried (P-31).
type InsufficientCapacityError struct {
	// Asked is what the claim asked for, as text: its requirements and resources.
	Asked string
	// Tried are the offerings that match the claim but were refused or unavailable. If it is empty, no offering of the
	// catalogue matches, and Conflict says why.
	Tried []Offering
	// Conflict says what ruled out the closest offering, "" when Tried is not empty.
	Conflict string
}

// Error says what was asked for and why there is no machine.
func (e *InsufficientCapacityError) Error() string {
	if len(e.Tried) == 0 {
		return fmt.Sprintf("insufficient capacity: no offering matches %s: %s", e.Asked, e.Conflict)
	}
	var names []string
	for _, offering := range e.Tried[:min(len(e.Tried), maxOfferingsInMessage)] {
		names = append(names, offering.String())
	}
	if more := len(e.Tried) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("insufficient capacity: %s matches only offerings that are unavailable: %s", e.Asked,
		strings.Join(names, ", "))
}

// NodeClassNotReadyError means that the node class exists but cannot be used now.
type NodeClassNotReadyError struct {
	Class  string // name of the node class
	Reason string // from its Ready condition
}

// Error names the class and the reason.
func (e *NodeClassNotReadyError) Error() string {
	return fmt.Sprintf("node class %s is not ready: %s", e.Class, e.Reason)
}

// LaunchError means that a launch failed for a reason that the claim's Launched condition should show.
type LaunchError struct {
	ConditionReason string // one CamelCase word
	Message         string
}

// Error returns the reason and the message.
func (e *LaunchError) Error() string { return e.ConditionReason + ": " + e.Message }
