package provider

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotFound means that the machine is proved gone, or never was.
var ErrNotFound = errors.New("instance not found")

// ErrNodeClassNotFound means that the node class a pool or claim names does not exist.
var ErrNodeClassNotFound = errors.New("node class not found")

// ErrThrottled means that the cloud takes no more calls at this moment: ask again later.
var ErrThrottled = errors.New("throttled by the provider")

// maxOfferingsInMessage bounds the text of an [InsufficientCapacityError]; the value holds them all.
const maxOfferingsInMessage = 5

// Offering identifies a way to buy an instance type.
type Offering struct {
	Type, Zone, CapacityType string
}

// String prints type/zone/capacity type.
func (o Offering) String() string { return o.Type + "/" + o.Zone + "/" + o.CapacityType }

// InsufficientCapacityError means that no machine could be had for a claim. The claim is to be given up and its pods
// planned again, without the offerings in Tried (P-31).
type InsufficientCapacityError struct {
	// Asked is what the claim asked for, as text: its requirements and resources.
	Asked string
	// Tried are the offerings that match the claim but were refused or unavailable. Empty means that the catalogue
	// holds none that matches at all; Conflict then says why.
	Tried []Offering
	// Conflict names what ruled out the offerings that came closest, "" when Tried is not empty.
	Conflict string
}

// Error says what was asked for and why it could not be had.
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

// LaunchError means that a launch failed for a cause that the claim's Launched condition should show.
type LaunchError struct {
	ConditionReason string // one CamelCase word
	Message         string
}

// Error returns the message with its reason.
func (e *LaunchError) Error() string { return e.ConditionReason + ": " + e.Message }
