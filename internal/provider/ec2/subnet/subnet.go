// Package subnet chooses the subnets and security groups of a node class, and the subnet of each zone that a launch
// uses (E-11, E-12).
//
//   - [SubnetQueries] and [GroupQueries] return the questions to EC2 for all classes together. [Select] and
//     [SelectGroups] return a class's part of the answers.
//   - [Free] counts the free addresses, between two answers of EC2.
//   - [Choose] picks a subnet for each zone.
//
// It makes no calls.
package subnet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Subnet is EC2's description of a subnet.
type Subnet struct {
	ID, Zone, ZoneID, VPC string
	Free                  int64 // free IPv4 addresses
	Tags                  map[string]string
}

// Group is EC2's description of a security group.
type Group struct {
	ID, Name, VPC string
	Tags          map[string]string
}

// Of reads an answer of DescribeSubnets.
func Of(s ec2types.Subnet) Subnet {
	return Subnet{
		ID: value(s.SubnetId), Zone: value(s.AvailabilityZone), ZoneID: value(s.AvailabilityZoneId),
		VPC: value(s.VpcId), Free: int64(value(s.AvailableIpAddressCount)), Tags: tags(s.Tags),
	}
}

// GroupOf reads an answer of DescribeSecurityGroups.
func GroupOf(g ec2types.SecurityGroup) Group {
	return Group{ID: value(g.GroupId), Name: value(g.GroupName), VPC: value(g.VpcId), Tags: tags(g.Tags)}
}

// Select returns the subnets that one of the terms chooses, each once: those with the most free addresses first, equal
// ones by ID.
func Select(terms []awsv1.SubnetSelectorTerm, subnets []Subnet) []Subnet {
	chosen := selected(subnetTerms(terms), subnets, func(s Subnet) thing { return thing{id: s.ID, tags: s.Tags} })
	slices.SortFunc(chosen, func(a, b Subnet) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), strings.Compare(a.ID, b.ID))
	})
	return chosen
}

// SelectGroups returns the security groups that one of the terms chooses, each once, by ID.
func SelectGroups(terms []awsv1.SecurityGroupSelectorTerm, groups []Group) []Group {
	as := func(g Group) thing { return thing{id: g.ID, name: g.Name, tags: g.Tags} }
	chosen := selected(groupTerms(terms), groups, as)
	slices.SortFunc(chosen, func(a, b Group) int { return strings.Compare(a.ID, b.ID) })
	return chosen
}

// Mismatch returns a text with the VPCs of a class's subnets and security groups if there is more than one: no
// instance can have both. Otherwise it returns "".
func Mismatch(subnets []Subnet, groups []Group) string {
	ofSubnets, ofGroups := map[string][]string{}, map[string][]string{}
	for _, s := range subnets {
		ofSubnets[s.VPC] = append(ofSubnets[s.VPC], s.ID)
	}
	for _, g := range groups {
		ofGroups[g.VPC] = append(ofGroups[g.VPC], g.ID)
	}
	all := maps.Clone(ofSubnets)
	maps.Copy(all, ofGroups)
	if len(all) < 2 {
		return ""
	}
	return fmt.Sprintf("subnets and security groups are of different VPCs, so that no instance can have both: "+
		"subnets %s; security groups %s; choose those of one VPC in subnetSelectorTerms and securityGroupSelectorTerms",
		listed(ofSubnets), listed(ofGroups))
}

// listed returns a text such as "vpc-1 (subnet-a, subnet-b), vpc-2 (subnet-c)", with a few of each.
func listed(byVPC map[string][]string) string {
	const most = 3
	var parts []string
	for _, vpc := range slices.Sorted(maps.Keys(byVPC)) {
		ids := slices.Sorted(slices.Values(byVPC[vpc]))
		if more := len(ids) - most; more > 0 {
			ids = append(ids[:most], fmt.Sprintf("and %d more", more))
		}
		parts = append(parts, vpc+" ("+strings.Join(ids, ", ")+")")
	}
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more VPCs", more))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// term is a selector term: an id, or a name, or tags that must all be there.
type term struct {
	id, name string
	tags     map[string]string
}

// thing is an object that a term may choose.
type thing struct {
	id, name string
	tags     map[string]string
}

func (t term) chooses(what thing) bool {
	if t.id == "" && t.name == "" && len(t.tags) == 0 {
		return false
	}
	if t.id != "" && t.id != what.id || t.name != "" && !like(t.name, what.name) {
		return false
	}
	for key, want := range t.tags {
		has, tagged := what.tags[key]
		if !tagged || !like(want, has) {
			return false
		}
	}
	return true
}

func selected[T any](terms []term, all []T, as func(T) thing) (chosen []T) {
	seen := map[string]bool{}
	for _, each := range all {
		what := as(each)
		if !seen[what.id] && slices.ContainsFunc(terms, func(t term) bool { return t.chooses(what) }) {
			seen[what.id] = true
			chosen = append(chosen, each)
		}
	}
	return chosen
}

func subnetTerms(terms []awsv1.SubnetSelectorTerm) (all []term) {
	for _, t := range terms {
		all = append(all, term{id: t.ID, tags: t.Tags})
	}
	return all
}

func groupTerms(terms []awsv1.SecurityGroupSelectorTerm) (all []term) {
	for _, t := range terms {
		all = append(all, term{id: t.ID, name: t.Name, tags: t.Tags})
	}
	return all
}

// like reports whether a text matches a pattern of EC2's filters: * matches any text, ? one character, and a backslash
// escapes them.
func like(pattern, text string) bool {
	p, s := []rune(pattern), []rune(text)
	matches := make([]bool, len(s)+1) // matches[j]: the pattern so far matches s[:j]
	matches[0] = true
	for i := 0; i < len(p); i++ {
		star, any := p[i] == '*', p[i] == '?'
		if p[i] == '\\' && i+1 < len(p) {
			i++
		}
		next := make([]bool, len(s)+1)
		next[0] = star && matches[0]
		for j := range s {
			if star {
				next[j+1] = matches[j+1] || next[j]
			} else {
				next[j+1] = matches[j] && (any || p[i] == s[j])
			}
		}
		matches = next
	}
	return matches[len(s)]
}

func tags(list []ec2types.Tag) map[string]string {
	all := map[string]string{}
	for _, t := range list {
		all[value(t.Key)] = value(t.Value)
	}
	return all
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
