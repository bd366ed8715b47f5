package iampolicy

import (
	"fmt"
	"slices"
	"strings"
)

// Request is one question: an action on a resource.
type Request struct {
	Action   string // with its service: ec2:CreateTags
	Resource string // an ARN, or * for an action that has none
	// RequestTags are the tags that the request sets, ResourceTags those that the resource has.
	RequestTags, ResourceTags map[string]string
	// Context has the other keys for conditions. A key that is not in it is absent.
	Context map[string]string
}

// context returns the values for conditions, by key in lower case: tag keys are compared regardless of case, too.
func (r *Request) context() map[string][]string {
	all := map[string][]string{}
	for key, value := range r.Context {
		all[strings.ToLower(key)] = []string{value}
	}
	for key, value := range r.ResourceTags {
		all[strings.ToLower(ResourceTag+key)] = []string{value}
	}
	for key, value := range r.RequestTags {
		all[strings.ToLower(RequestTag+key)] = []string{value}
		all[strings.ToLower(TagKeys)] = append(all[strings.ToLower(TagKeys)], key)
	}
	return all
}

// Right is one action on one resource that a statement allows, or one value that its conditions accept.
type Right struct {
	Statement string // its Sid, or its place
	What      string
}

// String returns the right as text.
func (r Right) String() string { return r.Statement + ": " + r.What }

func allows(s *statement, action, resource string) Right {
	return Right{s.name, action + " on " + resource}
}

func accepts(s *statement, c *condition, value string) Right {
	return Right{s.name, fmt.Sprintf("%s = %q", c.text, value)}
}

// Rights returns the rights of all Allow statements, in order: each action on each resource, and each value of a
// condition that has several.
func (p *Policy) Rights() (list []Right) {
	for i := range p.statements {
		s := &p.statements[i]
		if s.deny {
			continue
		}
		for _, a := range s.actions {
			for _, r := range s.resources {
				list = append(list, allows(s, a, r))
			}
		}
		for j := range s.conditions {
			if c := &s.conditions[j]; len(c.values) > 1 {
				for _, v := range c.values {
					list = append(list, accepts(s, c, v))
				}
			}
		}
	}
	return list
}

// Decision is the answer to a request.
type Decision struct {
	Allowed bool
	// Denied is the statement that denies the request, whatever others allow; "" for none.
	Denied string
	// Rights are the rights that allow the request, each of which is enough, and the values that their conditions
	// accepted.
	Rights []Right
}

// Decide returns whether the policy allows a request: some statement must allow it, and none may deny it.
func (p *Policy) Decide(r Request) Decision {
	var d Decision
	var context map[string][]string
	for i := range p.statements {
		s := &p.statements[i]
		rights := s.matches(r.Action, r.Resource)
		if len(rights) == 0 {
			continue
		}
		if context == nil {
			context = r.context()
		}
		if slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(context) }) {
			continue
		}
		if s.deny {
			return Decision{Denied: s.name}
		}
		d.Allowed = true
		d.Rights = append(d.Rights, rights...)
		for j := range s.conditions {
			d.Rights = append(d.Rights, s.accepted(&s.conditions[j], context)...)
		}
	}
	return d
}

// matches returns the rights of a statement that match an action and a resource, without its conditions.
func (s *statement) matches(action, resource string) (list []Right) {
	var actions, resources []string
	action = strings.ToLower(action)
	for _, a := range s.actions {
		if glob(strings.ToLower(a), action) != s.notAction {
			actions = append(actions, a)
		}
	}
	if len(actions) == 0 {
		return nil
	}
	for _, r := range s.resources {
		if matchARN(r, resource, s.deny || s.notResource) != s.notResource {
			resources = append(resources, r)
		}
	}
	if s.notAction && len(actions) < len(s.actions) || s.notResource && len(resources) < len(s.resources) {
		return nil // the request is one of the exceptions
	}
	for _, a := range actions {
		for _, r := range resources {
			list = append(list, allows(s, a, r))
		}
	}
	return list
}

// accepted returns the values of a condition that the request has.
func (s *statement) accepted(c *condition, context map[string][]string) (list []Right) {
	if c.null || len(c.values) < 2 {
		return nil
	}
	for _, v := range c.values {
		if slices.ContainsFunc(context[c.key], func(has string) bool { return c.match(v, has) }) {
			list = append(list, accepts(s, c, v))
		}
	}
	return list
}
