package resolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

const (
	// mostPages bounds a listing: 1,000 items each where EC2 is asked.
	mostPages = 1000
	// allFor is how long a count of all subnets or groups holds. Only messages have it.
	allFor = 10 * time.Minute
	// all is the key of the question for everything, beside those of terms.
	all = "all"
)

// network is a kind of objects that terms choose: subnets or security groups.
type network[Term, Found any] struct {
	action  string
	memory  *memory[[]Found]
	terms   func(*awsv1.EC2NodeClass) []Term
	queries func(map[string][]Term) []subnet.Query
	list    func(context.Context, []ec2types.Filter) ([]Found, error)
	choose  func([]Term, []Found) []Found
	refresh time.Duration
}

func (r *Resolver) subnets() network[awsv1.SubnetSelectorTerm, subnet.Subnet] {
	return network[awsv1.SubnetSelectorTerm, subnet.Subnet]{
		action: "ec2:DescribeSubnets", memory: r.knownSubnets, queries: subnet.SubnetQueries, choose: subnet.Select,
		terms:   func(c *awsv1.EC2NodeClass) []awsv1.SubnetSelectorTerm { return c.Spec.SubnetSelectorTerms },
		refresh: r.config.SubnetRefresh,
		list: func(ctx context.Context, filters []ec2types.Filter) (found []subnet.Subnet, err error) {
			err = pages(ctx, func(ctx context.Context, token *string) (*string, error) {
				out, err := r.config.EC2.DescribeSubnets(ctx,
					&ec2.DescribeSubnetsInput{Filters: filters, NextToken: token})
				if err != nil || out.Subnets == nil {
					return nil, cmp.Or(err, errNoContent)
				}
				for _, s := range out.Subnets {
					found = append(found, subnet.Of(s))
				}
				return out.NextToken, nil
			})
			return found, err
		},
	}
}

func (r *Resolver) groups() network[awsv1.SecurityGroupSelectorTerm, subnet.Group] {
	return network[awsv1.SecurityGroupSelectorTerm, subnet.Group]{
		action: "ec2:DescribeSecurityGroups", memory: r.knownGroups, queries: subnet.GroupQueries,
		choose: subnet.SelectGroups,
		terms: func(c *awsv1.EC2NodeClass) []awsv1.SecurityGroupSelectorTerm {
			return c.Spec.SecurityGroupSelectorTerms
		},
		refresh: r.config.SecurityGroupRefresh,
		list: func(ctx context.Context, filters []ec2types.Filter) (found []subnet.Group, err error) {
			err = pages(ctx, func(ctx context.Context, token *string) (*string, error) {
				in := &ec2.DescribeSecurityGroupsInput{Filters: filters, NextToken: token}
				out, err := r.config.EC2.DescribeSecurityGroups(ctx, in)
				if err != nil || out.SecurityGroups == nil {
					return nil, cmp.Or(err, errNoContent)
				}
				for _, g := range out.SecurityGroups {
					found = append(found, subnet.GroupOf(g))
				}
				return out.NextToken, nil
			})
			return found, err
		},
	}
}

// errNoContent is the error of an answer without content, which the SDK takes for an empty list. If there is nothing,
// EC2 sends an empty list; this answer says nothing at all (E-78).
var errNoContent = errors.New("the answer has no content")

// pages calls until there is no further page.
func pages(ctx context.Context, call func(ctx context.Context, token *string) (next *string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var token *string
	for range mostPages {
		next, err := call(ctx, token)
		if err != nil {
			return err
		}
		if next == nil || *next == "" {
			return nil
		}
		token = next
	}
	return fmt.Errorf("the answer has more than %d pages", mostPages)
}

// termKey returns the key of a term in the memory; equal terms have equal keys.
func termKey(term any) string { return fmt.Sprintf("%q", term) }

// ask asks for the due terms of all classes: each set of tags once, and all ids together (E-11).
func (n network[Term, Found]) ask(ctx context.Context, classes []*awsv1.EC2NodeClass, clock func() time.Time) {
	terms := map[string]Term{}
	for _, class := range classes {
		for _, term := range n.terms(class) {
			terms[termKey(term)] = term
		}
	}
	holds := func(string, []Found) time.Duration { return n.refresh }
	due := map[string][]Term{}
	for _, key := range n.memory.due(clock(), slices.Collect(maps.Keys(terms)), holds) {
		due[key] = []Term{terms[key]}
	}
	for _, query := range n.queries(due) {
		asked := clock()
		found, err := n.list(ctx, filtersOf(query.Filters))
		for _, key := range query.For {
			if err != nil {
				n.memory.failed(key, clock(), failureOf(n.action, err))
			} else {
				n.memory.answered(key, asked, n.choose(due[key], found))
			}
			delete(due, key)
		}
	}
	for key := range due { // an empty term asks nothing and chooses nothing
		n.memory.answered(key, clock(), nil)
	}
	if slices.ContainsFunc(classes, n.findsNone) {
		n.askAll(ctx, clock)
	}
}

// askAll asks for all objects, to count them in the message of a class that finds none (E-68).
func (n network[Term, Found]) askAll(ctx context.Context, clock func() time.Time) {
	holds := func(string, []Found) time.Duration { return allFor }
	if len(n.memory.due(clock(), []string{all}, holds)) == 0 {
		return
	}
	asked := clock()
	if found, err := n.list(ctx, nil); err != nil {
		n.memory.failed(all, clock(), failureOf(n.action, err))
	} else {
		n.memory.answered(all, asked, found)
	}
}

func (n network[Term, Found]) findsNone(class *awsv1.EC2NodeClass) bool {
	found, _, b := n.of(class)
	return b.known && len(found) == 0
}

// of returns the objects that the terms of a class choose, in the order of package subnet, and the indexes of the
// terms that choose nothing.
func (n network[Term, Found]) of(class *awsv1.EC2NodeClass) (found []Found, empty []int, b basis) {
	b = newBasis()
	for i, term := range n.terms(class) {
		a := n.memory.get(termKey(term))
		b.add(a.state, n.refresh)
		if a.known && len(a.value) == 0 {
			empty = append(empty, i)
		}
		found = append(found, a.value...)
	}
	return n.choose(n.terms(class), found), empty, b
}

// judgement has the texts for the condition of what terms choose.
type judgement struct {
	kind, reason string
	things       string // subnets
	field        string // spec.subnetSelectorTerms
	texts        []string
	region       string
}

// found returns the condition for count chosen objects. total is how many exist, -1 when unknown.
func (j judgement) found(count int, empty []int, total int) karpenterv1.Condition {
	var none []string
	for _, i := range empty {
		none = append(none, fmt.Sprintf("%s[%d] (%s)", j.field, i, j.texts[i]))
	}
	switch {
	case count > 0 && len(none) == 0:
		return met(j.kind, "")
	case count > 0:
		return met(j.kind, fmt.Sprintf("no %s for %s", j.things, strings.Join(none, ", ")))
	}
	text := fmt.Sprintf("no %s for %s", j.things, strings.Join(none, ", "))
	switch {
	case total == 0:
		text += fmt.Sprintf("; the account has none in %s: is it the right region and account?", j.region)
	case total > 0:
		text += fmt.Sprintf("; the account has %d in %s: change the terms, or the tags of what is meant", total,
			j.region)
	}
	return unmet(j.kind, j.reason, text)
}

func (r *Resolver) judgeSubnets(class *awsv1.EC2NodeClass, into *Result, now time.Time) {
	n := r.subnets()
	found, empty, b := n.of(class)
	j := judgement{
		kind: SubnetsReady, reason: SubnetsNotFound, things: "subnets", field: "spec.subnetSelectorTerms",
		region: r.config.Region,
	}
	for _, t := range class.Spec.SubnetSelectorTerms {
		j.texts = append(j.texts, termText(t.ID, "", t.Tags))
	}
	if !b.known {
		into.keep(SubnetsReady, r, class, b, now)
		return
	}
	into.Subnets, into.SubnetsAsked, into.Status.Subnets = found, b.asked, nil
	for _, s := range found {
		into.Status.Subnets = append(into.Status.Subnets, awsv1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	into.add(j.found(len(found), empty, n.total()), b, now)
}

func (r *Resolver) judgeGroups(class *awsv1.EC2NodeClass, into *Result, now time.Time) {
	n := r.groups()
	found, empty, b := n.of(class)
	j := judgement{
		kind: SecurityGroupsReady, reason: SecurityGroupsNotFound, things: "security groups",
		field: "spec.securityGroupSelectorTerms", region: r.config.Region,
	}
	for _, t := range class.Spec.SecurityGroupSelectorTerms {
		j.texts = append(j.texts, termText(t.ID, t.Name, t.Tags))
	}
	if !b.known {
		into.keep(SecurityGroupsReady, r, class, b, now)
		return
	}
	into.Groups, into.Status.SecurityGroups = found, nil
	for _, g := range found {
		into.Status.SecurityGroups = append(into.Status.SecurityGroups, awsv1.SecurityGroup{ID: g.ID, Name: g.Name})
	}
	into.add(j.found(len(found), empty, n.total()), b, now)
}

// total returns how many objects exist, -1 if that was not asked.
func (n network[Term, Found]) total() int {
	if a := n.memory.get(all); a.known {
		return len(a.value)
	}
	return -1
}

// termText returns a text such as "id subnet-1", or "name nodes, tags a=b, c=*".
func termText(id, name string, tags map[string]string) string {
	var parts []string
	if id != "" {
		parts = append(parts, "id "+id)
	}
	if name != "" {
		parts = append(parts, "name "+name)
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		pairs = append(pairs, key+"="+tags[key])
	}
	if len(pairs) > 0 {
		parts = append(parts, "tags "+strings.Join(pairs, ", "))
	}
	return strings.Join(parts, ", ")
}

func filtersOf(filters []subnet.Filter) (list []ec2types.Filter) {
	for _, f := range filters {
		list = append(list, ec2types.Filter{Name: new(f.Name), Values: f.Values})
	}
	return list
}
