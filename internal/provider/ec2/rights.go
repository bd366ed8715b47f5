package ec2

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Reasons of the provider's events, beside those of package quota.
const (
	EventUnauthorized = "LaunchUnauthorized"
	EventAddresses    = "InsufficientFreeAddresses"
)

// refusedHolds is how long a class does not launch after a launch was refused for lack of rights (E-44). Refused calls
// count against the account's rate, and planning can use other classes. A successful dry run ends it.
const refusedHolds = 30 * time.Minute

// refusedFor says that EC2 refused a launch for lack of rights.
type refusedFor struct {
	generation int64 // of the class
	at         time.Time
	text       string
}

// denied notes that a launch was refused for lack of rights.
func (p *Provider) denied(class *awsv1.EC2NodeClass, text string) {
	p.mu.Lock()
	p.refused[class.UID] = refusedFor{class.Generation, p.config.Clock.Now(), text}
	p.mu.Unlock()
	p.changed()
	p.config.Told(Event{Class: class.Name, Reason: EventUnauthorized,
		Message: fmt.Sprintf("EC2 refuses to launch by this class: %s; it is tried again by a dry run, "+
			"and at the latest in %s", text, refusedHolds)})
}

// mayNot returns why a class must not launch for now; "" when it may try.
func (p *Provider) mayNot(class *awsv1.EC2NodeClass) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, refused := p.refused[class.UID]
	if !refused || r.generation != class.Generation || !p.config.Clock.Now().Before(r.at.Add(refusedHolds)) {
		return ""
	}
	return fmt.Sprintf("%s: %s", ReasonUnauthorized, r.text)
}

// Denied returns when a launch of a class was last refused for lack of rights; false when none was, or it may try
// again.
func (p *Provider) Denied(class *awsv1.EC2NodeClass) (at time.Time, denied bool) {
	if p.mayNot(class) == "" {
		return time.Time{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[class.UID].at, true
}

// Allowed notes that EC2 would launch with a class.
func (p *Provider) Allowed(uid types.UID) {
	p.mu.Lock()
	delete(p.refused, uid)
	p.mu.Unlock()
	p.changed()
}
