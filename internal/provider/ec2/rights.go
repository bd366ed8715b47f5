package ec2

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Reasons of events that the provider tells, beside those of package quota.
const (
	EventUnauthorized = "LaunchUnauthorized"
	EventAddresses    = "InsufficientFreeAddresses"
)

// refusedHolds is how long nothing is launched by a class whose launch was refused for lack of rights (E-44): calls
// that are refused count against the account's rate, and planning can go elsewhere. A dry run that passes ends it.
const refusedHolds = 30 * time.Minute

// refusedFor says that EC2 refused a launch for lack of rights.
type refusedFor struct {
	generation int64 // of the class
	at         time.Time
	text       string
}

// denied takes in that a launch was refused for lack of rights.
func (p *Provider) denied(class *awsv1.EC2NodeClass, text string) {
	p.mu.Lock()
	p.refused[class.UID] = refusedFor{class.Generation, p.config.Clock.Now(), text}
	p.mu.Unlock()
	p.changed()
	p.config.Told(Event{Class: class.Name, Reason: EventUnauthorized,
		Message: fmt.Sprintf("EC2 refuses to launch by this class: %s; it is tried again by a dry run, "+
			"and at the latest in %s", text, refusedHolds)})
}

// mayNot says why nothing is launched by a class for now; "" when it may be tried.
func (p *Provider) mayNot(class *awsv1.EC2NodeClass) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, refused := p.refused[class.UID]
	if !refused || r.generation != class.Generation || !p.config.Clock.Now().Before(r.at.Add(refusedHolds)) {
		return ""
	}
	return fmt.Sprintf("%s: %s", ReasonUnauthorized, r.text)
}

// Denied returns when a launch by a class was last refused for lack of rights; false when none was, or it may be tried
// again.
func (p *Provider) Denied(class *awsv1.EC2NodeClass) (at time.Time, denied bool) {
	if p.mayNot(class) == "" {
		return time.Time{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[class.UID].at, true
}

// Allowed takes in that EC2 would launch by a class.
func (p *Provider) Allowed(uid types.UID) {
	p.mu.Lock()
	delete(p.refused, uid)
	p.mu.Unlock()
	p.changed()
}
