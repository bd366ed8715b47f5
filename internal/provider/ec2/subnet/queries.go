package subnet

import (
	"fmt"
	"maps"
	"slices"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// mostValues is how many values EC2 accepts for one filter.
const mostValues = 200

// Query is a call for all objects that pass each of its filters.
type Query struct {
	Filters []Filter
	// For are the names of the classes that need the answer, ordered.
	For []string
}

// Filter passes objects with one of the values. Unlike in a list of ids, an id that does not exist is not an error.
type Filter struct {
	Name   string
	Values []string
}

// SubnetQueries returns the calls of DescribeSubnets for the terms of all classes, by name of the class: one for all
// ids, and one for each set of tags, however many classes have it. The order is fixed.
func SubnetQueries(classes map[string][]awsv1.SubnetSelectorTerm) []Query {
	terms := map[string][]term{}
	for name, list := range classes {
		terms[name] = subnetTerms(list)
	}
	return queries(terms, "subnet-id", "")
}

// GroupQueries is like [SubnetQueries], for DescribeSecurityGroups.
func GroupQueries(classes map[string][]awsv1.SecurityGroupSelectorTerm) []Query {
	terms := map[string][]term{}
	for name, list := range classes {
		terms[name] = groupTerms(list)
	}
	return queries(terms, "group-id", "group-name")
}

// queries returns the calls; ids and names are the names of the filters for these.
func queries(classes map[string][]term, ids, names string) []Query {
	byID, byName := map[string][]string{}, map[string][]string{} // value → classes
	byTags, sets := map[string]Query{}, []string{}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		for _, t := range classes[class] {
			switch {
			case t.id != "":
				byID[t.id] = append(byID[t.id], class)
			case t.name != "":
				byName[t.name] = append(byName[t.name], class)
			case len(t.tags) > 0:
				filters := tagFilters(t.tags)
				key := fmt.Sprintf("%q", filters)
				query, known := byTags[key]
				if !known {
					sets = append(sets, key)
					query.Filters = filters
				}
				query.For = append(query.For, class)
				byTags[key] = query
			}
		}
	}
	all := append(byValue(ids, byID), byValue(names, byName)...)
	slices.Sort(sets)
	for _, key := range sets {
		query := byTags[key]
		query.For = slices.Compact(query.For) // classes come in order
		all = append(all, query)
	}
	return all
}

// byValue returns queries for all values, as many in one call as a filter accepts.
func byValue(filter string, classes map[string][]string) (all []Query) {
	for values := range slices.Chunk(slices.Sorted(maps.Keys(classes)), mostValues) {
		var whose []string
		for _, v := range values {
			whose = append(whose, classes[v]...)
		}
		slices.Sort(whose)
		all = append(all, Query{Filters: []Filter{{Name: filter, Values: values}}, For: slices.Compact(whose)})
	}
	return all
}

// tagFilters returns a filter for each tag, by key. The value * means any.
func tagFilters(tags map[string]string) (filters []Filter) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if tags[key] == "*" {
			filters = append(filters, Filter{Name: "tag-key", Values: []string{key}})
		} else {
			filters = append(filters, Filter{Name: "tag:" + key, Values: []string{tags[key]}})
		}
	}
	return filters
}
