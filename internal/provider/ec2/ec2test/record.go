package ec2test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

// Call is a request that the endpoint answered, or would have if its answer had not been lost.
type Call struct {
	Time            time.Time // of the world
	Service, Action string
	Key             string // the access key
	Asks            []Ask
	DryRun          bool
	Code            string // of the refusal; "" on success
	Lost            bool   // the answer did not arrive
}

// Ask is one right that a request needs: an action on a resource. A launch needs many. It has the values for a
// policy's conditions.
type Ask struct {
	Action       string // with its service: ec2:CreateTags
	Resource     string // an ARN, or *
	RequestTags  map[string]string
	ResourceTags map[string]string
	Context      map[string]string // condition keys beside tags, such as ec2:CreateAction
	Missing      bool              // the resource does not exist, so nobody knows its tags
}

// Calls returns the calls so far, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Counts returns how often each action was called, by "service:Action".
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Forget empties the record and the counts, so that a test counts from here.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
	clear(s.counts)
}

// call is a request while it is being answered.
type call struct {
	*Server
	Call
	parameters any           // what the protocol read: *parameter, JSON or a path
	at         string        // the region of the request
	wait       time.Duration // how long to wait for news before the answer
}

func (c *call) name() string { return c.Service + ":" + c.Action }

// authorize asks for rights, records the questions, and refuses the first that is denied.
func (c *call) authorize(asks ...Ask) error {
	for _, ask := range asks {
		ask.Context = maps.Clone(ask.Context)
		if ask.Context == nil {
			ask.Context = map[string]string{}
		}
		ask.Context[iampolicy.RequestedRegion] = c.at
		c.Asks = append(c.Asks, ask)
	}
	for _, ask := range c.Asks[len(c.Asks)-len(asks):] {
		if cause := c.faults.denied(ask); cause != "" {
			return c.unauthorized(ask, cause)
		}
	}
	return nil
}

// list asks for the right to an action that has no resource, as all listings.
func (c *call) list() error { return c.authorize(Ask{Action: c.name(), Resource: "*"}) }

// unauthorized returns the refusal in the form of the service: it names user, action, resource and cause.
func (c *call) unauthorized(ask Ask, cause string) error {
	text := "User: arn:aws:sts::" + Account + ":assumed-role/joiner/session is not authorized to perform: " +
		ask.Action + " on resource: " + ask.Resource + " " + cause
	if c.Service == "ec2" {
		return refuse(403, codeUnauthorized, "You are not authorized to perform this operation. %s", text)
	}
	if c.Service == "iam" {
		return refuse(403, "AccessDenied", "%s", text)
	}
	return refuse(400, "AccessDeniedException", "%s", text)
}

// dry ends a request that is a dry run.
func (c *call) dry(asked bool) error {
	if !asked {
		return nil
	}
	c.DryRun = true
	return refuse(412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
}

// arn returns the ARN of a resource of EC2, such as arn("instance", "i-1"). The id "*" means any.
func (s *Server) arn(kind, id string) string {
	account := Account
	if kind == "image" || kind == "snapshot" {
		account = ""
	}
	return strings.Join([]string{"arn", "aws", "ec2", s.region, account, kind + "/" + id}, ":")
}
