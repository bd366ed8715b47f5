// Package queue reads the messages of a cluster's interruption queue (E-51). [Parse] turns a message of EventBridge
// into notices; [ParseAddress] reads the address of the queue. It makes no calls.
//
// Sources: the EventBridge examples of the EC2 user guide (spot interruption, rebalance recommendation, state
// change, interruptible capacity reservations), and the event schema of the AWS Health user guide.
package queue

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Kind is the kind of a message, for metrics. It is always one of those below, whatever the message says.
type Kind string

// The kinds.
const (
	Spot        Kind = "spot_interruption"
	Rebalance   Kind = "rebalance_recommendation"
	StateChange Kind = "state_change"
	Reservation Kind = "capacity_reservation_interruption"
	Health      Kind = "scheduled_change"
	Unknown     Kind = "unknown"
	Malformed   Kind = "malformed"
)

// Kinds returns all kinds, in a fixed order.
func Kinds() []Kind {
	return []Kind{Spot, Rebalance, StateChange, Reservation, Health, Unknown, Malformed}
}

const (
	// warning is how long before the end of an instance EC2 sends the warning.
	warning = 2 * time.Minute
	// mostEntities bounds how many instances of one message are read. It is the page size of AWS Health.
	mostEntities = 1000
	// mostText bounds a message's own words in an explanation.
	mostText = 80
)

// Message is a parsed message.
type Message struct {
	Kind Kind
	// Notices are those about instances that providerID knew, in the message's order. There may be none, if the
	// instance is not ours or the state does not matter.
	Notices []provider.Notice
	// Sent is when AWS sent it; zero when that cannot be read.
	Sent time.Time
	// Explanation says what is unknown or malformed, as one line for the log; "" otherwise.
	Explanation string
}

// envelope is the common part of all messages. Members are read one by one where AWS's own examples differ in types.
type envelope struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       string          `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// ofInstance is the detail of a message about one instance.
type ofInstance struct {
	ID     string `json:"instance-id"`
	Action string `json:"instance-action"`
	State  string `json:"state"`
	Ends   string `json:"instance-termination-time"`
}

// ofHealth is the detail of a message of AWS Health.
type ofHealth struct {
	Service  string   `json:"service"`
	Category string   `json:"eventTypeCategory"`
	Status   string   `json:"statusCode"`
	Entities []entity `json:"affectedEntities"`
}

type entity struct {
	Value  string `json:"entityValue"`
	Status string `json:"status"`
}

var instanceForm = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// Parse reads a message. received is the current time. After a warning, the machine ends two minutes after the message
// was sent, or two minutes from now if that is earlier, since clocks differ. providerID returns the provider ID of an
// instance of this cluster, "" for others; it must not make calls. Parse never fails. A message that it cannot read is
// of kind Unknown or Malformed, and should be deleted from the queue.
func Parse(body []byte, received time.Time, providerID func(instanceID string) string) Message {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return malformed("it is no JSON object of EventBridge: %s", short(err.Error()))
	}
	sent, err := time.Parse(time.RFC3339, e.Time)
	if err != nil {
		sent = time.Time{}
	}
	kind := kindOf(e)
	if kind == Unknown {
		what := fmt.Sprintf("detail-type %q of source %q", short(e.DetailType), short(e.Source))
		return Message{Kind: Unknown, Sent: sent, Explanation: what}
	}
	var notices []provider.Notice
	if kind == Health {
		notices, err = ofHealthEvent(e)
	} else {
		notices, err = ofOneInstance(kind, e, sent, received)
	}
	if err != nil {
		return malformed("%s: %s", kind, short(err.Error()))
	}
	ours := Message{Kind: kind, Sent: sent}
	for _, n := range notices {
		if id := providerID(n.ProviderID); id != "" {
			n.ID = e.ID + "/" + n.ProviderID
			n.ProviderID = id
			ours.Notices = append(ours.Notices, n)
		}
	}
	return ours
}

func kindOf(e envelope) Kind {
	switch {
	case e.Source == "aws.health" && e.DetailType == "AWS Health Event":
		return Health
	case e.Source != "aws.ec2":
		return Unknown
	}
	switch e.DetailType {
	case "EC2 Spot Instance Interruption Warning":
		return Spot
	case "EC2 Instance Rebalance Recommendation":
		return Rebalance
	case "EC2 Instance State-change Notification":
		return StateChange
	case "EC2 Capacity Reservation Instance Interruption Warning", // the user guide has had both names
		"EC2 Interruptible Capacity Reservation Instance Interruption Warning":
		return Reservation
	}
	return Unknown
}

// ofOneInstance reads a message about an instance. In the result, ProviderID is the instance's own ID.
func ofOneInstance(kind Kind, e envelope, sent, received time.Time) ([]provider.Notice, error) {
	var d ofInstance
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return nil, fmt.Errorf("detail: %w", err)
	}
	if !instanceForm.MatchString(d.ID) {
		return nil, fmt.Errorf("detail.instance-id is %q: want the ID of an instance", d.ID)
	}
	n := provider.Notice{ProviderID: d.ID}
	if sent.IsZero() || sent.After(received) {
		sent = received
	}
	switch kind {
	case Spot:
		n.Kind, n.Gone = provider.SpotInterrupted, sent.Add(warning)
		if d.Action == "hibernate" { // hibernation begins with the warning
			n.Gone = sent
		}
	case Reservation:
		n.Kind, n.Gone = provider.CapacityReservationInterrupted, sent.Add(warning)
		if ends, err := time.Parse(time.RFC3339, d.Ends); err == nil && ends.Before(n.Gone) {
			n.Gone = ends
		}
	case Rebalance:
		n.Kind = provider.RebalanceRecommended
	default:
		switch d.State {
		case "stopping", "stopped":
			n.Kind = provider.InstanceStopping
		case "shutting-down", "terminated":
			n.Kind = provider.InstanceTerminating
		case "":
			return nil, fmt.Errorf("detail.state is missing")
		default:
			return nil, nil
		}
	}
	return []provider.Notice{n}, nil
}

// ofHealthEvent reads a message of AWS Health: the instances of a scheduled change that was not cancelled.
func ofHealthEvent(e envelope) (notices []provider.Notice, err error) {
	var d ofHealth
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return nil, fmt.Errorf("detail: %w", err)
	}
	if d.Service != "EC2" || d.Category != "scheduledChange" || d.Status == "closed" {
		return nil, nil
	}
	var seen []string
	for _, each := range d.Entities[:min(len(d.Entities), mostEntities)] {
		id := each.Value[strings.LastIndexByte(each.Value, '/')+1:] // an ARN ends with the ID
		if each.Status == "RESOLVED" || !instanceForm.MatchString(id) || slices.Contains(seen, id) {
			continue
		}
		seen = append(seen, id)
		notices = append(notices, provider.Notice{Kind: provider.InstanceUnhealthy, ProviderID: id})
	}
	return notices, nil
}

func malformed(format string, args ...any) Message {
	return Message{Kind: Malformed, Explanation: fmt.Sprintf(format, args...)}
}

// short bounds a text that somebody else wrote.
func short(text string) string {
	if runes := []rune(text); len(runes) > mostText {
		return string(runes[:mostText]) + "…"
	}
	return text
}
