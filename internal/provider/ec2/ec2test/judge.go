package ec2test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/rights"
)

// judge checks requests against policies (E-58).
type judge struct {
	tell     func(string)
	policies map[rights.Names][]policy
	told     map[string]bool
}

func newJudge(tell func(string)) *judge {
	return &judge{tell: tell, policies: map[rights.Names][]policy{}, told: map[string]bool{}}
}

// Judge checks requests against the policies from now on, like Options.Forbidden from the start.
func (s *Server) Judge(forbidden func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judge = newJudge(forbidden)
}

// policy is a policy that must allow every request, with its name.
type policy struct {
	name string
	*iampolicy.Policy
}

// hold reports, once, each right that a call needs and some policy does not give.
func (s *Server) hold(c Call) {
	if s.judge == nil || c.Key != AccessKey {
		return
	}
	for _, ask := range c.Asks {
		policies := s.judge.missing(ask, s.filled(ask))
		if text := forbidden(ask, policies); len(policies) > 0 && !s.judge.told[text] {
			s.judge.told[text] = true
			s.judge.tell(text)
		}
	}
}

// forbidden returns the report. It leaves out what differs in every call, such as an id or a value, so that each is
// reported once.
func forbidden(ask Ask, policies []string) string {
	kind, _, _ := strings.Cut(ask.Resource, "/")
	return fmt.Sprintf("no right of %s allows %s on %s, with request tags %v, tags of the resource %v and context %v",
		strings.Join(policies, " and "), ask.Action, kind, slices.Sorted(maps.Keys(ask.RequestTags)),
		slices.Sorted(maps.Keys(ask.ResourceTags)), ask.Context)
}

// missing returns the names of the policies that do not allow a request, with any of the names that they can be filled
// in with.
func (j *judge) missing(ask Ask, filled []rights.Names) (list []string) {
	// the path of a missing profile is unknown
	profile := ask.Missing && strings.Contains(ask.Resource, ":instance-profile/")
	if profile || rights.UsersOwn(ask.Action, ask.Resource) != "" {
		return nil
	}
	r := ask.Request()
	allowed := map[string]bool{}
	for _, n := range filled {
		if ask.Missing { // its owner is unknown: assume this cluster
			r.ResourceTags = rights.Owned(n)
		}
		for _, p := range j.of(n) {
			allowed[p.name] = allowed[p.name] || p.Decide(r).Allowed
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if !allowed[name] {
			list = append(list, name)
		}
	}
	return list
}

// Request returns the question in the form of package iampolicy.
func (a Ask) Request() iampolicy.Request {
	return iampolicy.Request{Action: a.Action, Resource: a.Resource, RequestTags: a.RequestTags,
		ResourceTags: a.ResourceTags, Context: a.Context}
}

// of returns the policies with names filled in.
func (j *judge) of(n rights.Names) []policy {
	if known := j.policies[n]; known != nil {
		return known
	}
	ours, err := rights.Controller(n)
	if err == nil {
		j.policies[n] = append(j.policies[n], policy{"deploy/aws/controller-policy.json", ours})
		var theirs *iampolicy.Policy
		if theirs, err = rights.Karpenter(n); err == nil {
			j.policies[n] = append(j.policies[n], policy{"Karpenter's policy", theirs})
		}
	}
	if err != nil {
		j.tell(err.Error())
	}
	return j.policies[n]
}

// filled returns the names that a user of this world could put into a policy: an existing cluster, role and queue, or
// the missing one of the request.
func (s *Server) filled(ask Ask) (list []rights.Names) {
	const none = "none"
	one := func(of []string, action, before string) []string {
		_, asked, _ := strings.Cut(ask.Resource, before)
		switch {
		case strings.HasPrefix(ask.Action, action) && ask.Missing:
			return []string{asked}
		case len(of) == 0:
			return []string{none}
		case strings.HasPrefix(ask.Action, action):
			return of
		}
		return of[:1]
	}
	clusters := slices.Sorted(maps.Keys(s.networks))
	for name := range s.clusters {
		clusters = append(clusters, name)
	}
	if ask.Action == "eks:DescribeCluster" {
		clusters = one(clusters, "eks:", "cluster/")
	} else if len(clusters) == 0 {
		clusters = []string{none}
	}
	for _, cluster := range clusters {
		for _, role := range one(slices.Sorted(maps.Keys(s.roles)), "iam:PassRole", "role/") {
			for _, queue := range one(slices.Sorted(maps.Keys(s.queues)), "sqs:", Account+":") {
				list = append(list, rights.Names{Partition: "aws", Region: s.region, Account: Account,
					Cluster: cluster, NodeRole: role, Queue: queue})
			}
		}
	}
	return list
}
