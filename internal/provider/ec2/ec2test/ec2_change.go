package ec2test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

type terminateIn struct {
	checked
	IDs []string `query:"InstanceId"`
}

type stateChangeXML struct {
	ID       string   `xml:"instanceId"`
	Current  stateXML `xml:"currentState"`
	Previous stateXML `xml:"previousState"`
}

type terminateOut struct {
	Instances []stateChangeXML `xml:"instancesSet>item"`
}

// maxTerminate is EC2's maximum number of ids in one call.
const maxTerminate = 1000

// terminateInstances fails completely for an id that does not exist, as EC2 documents. With a protected instance, the
// call fails too: the instances of its zone stay and those of other zones end.
func terminateInstances(c *call, in *terminateIn) (any, error) {
	if len(in.IDs) == 0 {
		return nil, refuse(400, codeMissing, "The request must contain the parameter InstanceId")
	}
	if len(in.IDs) > maxTerminate {
		return nil, refuse(400, codeBadValue, "%d instance IDs are given; at most %d", len(in.IDs), maxTerminate)
	}
	for _, id := range in.IDs {
		ask := Ask{Action: c.name(), Resource: c.arn("instance", id)}
		if i := c.machines[id]; i != nil {
			ask.ResourceTags = maps.Clone(i.Tags)
		}
		ask.Missing = ask.ResourceTags == nil
		if err := c.authorize(ask); err != nil {
			return nil, err
		}
	}
	list, err := c.seen(in.IDs)
	if err != nil {
		return nil, err
	}
	if err := c.dry(in.DryRun); err != nil {
		return nil, err
	}
	kept := map[string]string{} // by zone: a protected instance
	for _, i := range list {
		if i.Protected && kept[i.Zone] == "" {
			kept[i.Zone] = i.ID
		}
	}
	var out terminateOut
	for _, i := range list {
		if kept[i.Zone] != "" {
			continue
		}
		before := i.State
		c.end(i, c.now(), "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
		out.Instances = append(out.Instances, stateChangeXML{i.ID, stateXML{stateCodes[i.State], i.State},
			stateXML{stateCodes[before], before}})
	}
	for _, zone := range slices.Sorted(maps.Keys(kept)) {
		return nil, refuse(400, "OperationNotPermitted",
			"The instance '%s' may not be terminated. Modify its 'disableApiTermination' "+
				"instance attribute and try again.", kept[zone])
	}
	return out, nil
}

type createTagsIn struct {
	checked
	Resources []string `query:"ResourceId"`
	Tags      []tag    `query:"Tag"`
}

type createTagsOut struct {
	Return bool `xml:"return"`
}

// taggable is a resource whose tags can be written.
type taggable struct {
	kind, missing string
	tags          map[string]string // nil when there is none with this id
}

func (c *call) taggable(id string) taggable {
	prefix, _, _ := strings.Cut(id, "-")
	switch prefix {
	case "i":
		t := taggable{kind: "instance", missing: "InvalidInstanceID.NotFound"}
		if i := c.machines[id]; i != nil && !i.visible.After(c.now()) {
			t.tags = i.Tags
		}
		return t
	case "lt":
		t := taggable{kind: "launch-template", missing: "InvalidLaunchTemplateId.NotFound"}
		if l := c.template[id]; l != nil {
			if l.tags == nil {
				l.tags = map[string]string{}
			}
			t.tags = l.tags
		}
		return t
	}
	return taggable{kind: prefix, missing: "InvalidID"}
}

func createTags(c *call, in *createTagsIn) (any, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	targets := make([]taggable, 0, len(in.Resources))
	for _, id := range in.Resources {
		t := c.taggable(id)
		targets = append(targets, t)
		ask := Ask{Action: c.name(), Resource: c.arn(t.kind, id), RequestTags: tagMap(in.Tags),
			ResourceTags: maps.Clone(t.tags), Missing: t.tags == nil}
		if err := c.authorize(ask); err != nil {
			return nil, err
		}
	}
	if len(in.Resources) == 0 || len(in.Tags) == 0 {
		return nil, refuse(400, codeMissing, "The request must contain the parameters ResourceId and Tag")
	}
	for at, t := range targets {
		if t.tags == nil {
			return nil, refuse(400, t.missing, "The ID '%s' does not exist", in.Resources[at])
		}
		after := maps.Clone(t.tags)
		maps.Copy(after, tagMap(in.Tags))
		if len(after) > maxTags {
			return nil, refuse(400, "TagLimitExceeded", "'%s' would have %d tags; at most %d", in.Resources[at],
				len(after), maxTags)
		}
	}
	if err := c.dry(in.DryRun); err != nil {
		return nil, err
	}
	for _, t := range targets {
		maps.Copy(t.tags, tagMap(in.Tags))
	}
	return createTagsOut{true}, nil
}

type describeStatusIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"InstanceId"`
	All     bool     `query:"IncludeAllInstances"`
}

type statusXML struct {
	ID       string     `xml:"instanceId"`
	Zone     string     `xml:"availabilityZone"`
	State    stateXML   `xml:"instanceState"`
	Instance summaryXML `xml:"instanceStatus"`
	System   summaryXML `xml:"systemStatus"`
	Events   []eventXML `xml:"eventsSet>item"`
}

type summaryXML struct {
	Status  string      `xml:"status"`
	Details []detailXML `xml:"details>item"`
}

type detailXML struct {
	Name   string `xml:"name"`
	Status string `xml:"status"`
	Since  string `xml:"impairedSince,omitempty"`
}

type eventXML struct {
	ID          string `xml:"instanceEventId"`
	Code        string `xml:"code"`
	Description string `xml:"description"`
	NotBefore   string `xml:"notBefore"`
}

type describeStatusOut struct {
	Statuses []statusXML `xml:"instanceStatusSet>item"`
	Next     *string     `xml:"nextToken"`
}

// ScheduledEvent is maintenance that AWS has announced for an instance.
type ScheduledEvent struct {
	Code      string // instance-reboot, system-reboot, system-maintenance, instance-retirement, instance-stop
	NotBefore time.Time
}

// Schedule announces an event for an instance.
func (s *Server) Schedule(id string, e ScheduledEvent) {
	s.change(id, func(i *Instance) { i.events = append(i.events, e) })
}

// initializing is how long the checks of a new instance take.
const initializing = 2 * time.Minute

func (c *call) check(i *Instance) string {
	switch {
	case i.impaired:
		return "impaired"
	case c.now().Sub(i.Launched) < initializing:
		return "initializing"
	case i.State != Running:
		return "not-applicable"
	}
	return "ok"
}

func describeInstanceStatus(c *call, in *describeStatusIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "instancesSet"); err != nil {
		return nil, err
	}
	list, err := c.seen(in.IDs)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(i *Instance) bool { return !in.All && i.State != Running })
	list, err = filtered(list, in.Filters, fields[*Instance]{
		"instance-state-name":          one(func(i *Instance) string { return i.State }),
		"availability-zone":            one(func(i *Instance) string { return i.Zone }),
		"instance-status.status":       one(c.check),
		"instance-status.reachability": one(c.reachability),
		"system-status.status":         one(func(*Instance) string { return "ok" }),
		"system-status.reachability":   one(func(*Instance) string { return "passed" }),
		"event.code":                   eventCodes,
	}, nil)
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(i *Instance) string { return i.ID }, in.paging, bounds{5, 1000})
	out := describeStatusOut{Next: next}
	for _, i := range list {
		x := statusXML{ID: i.ID, Zone: i.Zone, State: stateXML{stateCodes[i.State], i.State},
			System: summaryXML{Status: "ok"}}
		detail := detailXML{Name: "reachability", Status: c.reachability(i)}
		if i.impaired {
			detail.Since = stamp(i.impairedSince)
		}
		x.Instance = summaryXML{Status: c.check(i), Details: []detailXML{detail}}
		for _, e := range i.events {
			id := strings.Replace(i.ID, "i-", "instance-event-", 1)
			x.Events = append(x.Events, eventXML{id, e.Code, e.Code, stamp(e.NotBefore)})
		}
		out.Statuses = append(out.Statuses, x)
	}
	return out, err
}

func eventCodes(i *Instance) []string {
	var codes []string
	for _, e := range i.events {
		codes = append(codes, e.Code)
	}
	return codes
}

func (c *call) reachability(i *Instance) string {
	return cmp.Or(map[string]string{"impaired": "failed", "initializing": "initializing"}[c.check(i)], "passed")
}

type runIn struct {
	checked
	templateData
	Template *fleetTemplate `query:"LaunchTemplate"`
	Token    string         `query:"ClientToken"`
	Min      int            `query:"MinCount"`
	Max      int            `query:"MaxCount"`
	Subnet   string         `query:"SubnetId"`
}

// runInstances answers only dry runs: the provider launches by fleets, and uses this for validation (E-62).
func runInstances(c *call, in *runIn) (any, error) {
	t := &template{data: in.templateData}
	if in.Template != nil {
		found, err := c.findTemplate(in.Template.ID, in.Template.Name)
		if err != nil {
			return nil, err
		}
		t = &template{id: found.id, tags: found.tags, data: found.data}
		t.data.InstanceType = cmp.Or(in.InstanceType, t.data.InstanceType)
		t.data.ImageID = cmp.Or(in.ImageID, t.data.ImageID)
	}
	l := &launch{call: c, capacityType: onDemand, tags: in.TagSpecification}
	if t.data.Market != nil && t.data.Market.Kind == spot {
		l.capacityType = spot
	}
	p := l.pool(t, fleetOverride{Subnet: in.Subnet})
	for _, check := range []func(pool) error{l.mayRun, l.fits, l.hasVolumes} {
		if err := check(p); err != nil {
			return nil, err
		}
	}
	if !in.DryRun {
		return nil, refuse(400, "UnsupportedOperation", "the endpoint launches by CreateFleet only")
	}
	return nil, c.dry(true)
}
