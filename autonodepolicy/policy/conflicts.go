package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// Vocabulary is the set of labels that every instance type of the provider has a value for. A contradiction on one of
// them keeps Karpenter from launching anything. On every other label it launches nodes without the label: it does not
// tell "nothing is allowed" from "must not exist" (K2). That goes for custom labels, and also for labels that only
// some types have, such as a number of GPUs. A missing label costs one more entry in a contradictory pool. A wrong
// label opens a way around the policy.
type Vocabulary map[fold.Key]bool

// CommonVocabulary returns the labels that every instance type of every provider has a value for.
func CommonVocabulary() Vocabulary {
	return Vocabulary{
		instanceTypeLabel: true, zoneLabel: true, archLabel: true, osLabel: true, capacityTypeLabel: true,
	}
}

// impossible is an entry that the API accepts and no instance type satisfies (G10, K2 measured).
func impossible() fold.Requirement {
	return fold.Requirement{Key: instanceTypeLabel, Operator: fold.DoesNotExist}
}

// Conflict is a label for which policy and pool together leave no value that an instance type could have. If the
// policy does not name the label, the pool contradicts itself.
type Conflict struct {
	Key fold.Key
	// Policy is what the policy allows: anything, if it does not name the label.
	Policy fold.Allowed
	// User is what the requirements and template labels of the pool allow.
	User fold.Allowed
	// Left is what both together allow: nothing, or only the absence of a label that every instance type has.
	Left fold.Allowed
}

// String tells a user in one line what to change, with at most 10 values of each side.
func (c Conflict) String() string {
	left := "nothing is left"
	if !c.Left.Empty() {
		left = fmt.Sprintf("only %s is left, and every instance type has the label", describe(c.Left))
	}
	if c.Policy.IsAny() {
		return fmt.Sprintf("%s: the entries and labels of this pool contradict each other: %s", c.Key, left)
	}
	return fmt.Sprintf("%s: the policy allows %s, this pool %s: %s", c.Key, describe(c.Policy), describe(c.User), left)
}

// Shortage is a label with fewer values left than minValues asks for (G11).
type Shortage struct {
	Key fold.Key
	// Want is the largest minValues of the label's entries.
	Want int
	// Left is what policy and pool together allow.
	Left fold.Allowed
}

// String tells a user in one line what to change, with at most 10 values.
func (s Shortage) String() string {
	return fmt.Sprintf("%s: minValues is %d, but only %s is left", s.Key, s.Want, describe(s.Left))
}

// shownValues bounds the values in a message: a policy may list a thousand instance types, and a condition is read by
// people.
const shownValues = 10

// describe says what a requirement allows, in the words of the API.
func describe(r fold.Allowed) string {
	switch {
	case r.Empty():
		return "nothing"
	case r.IsAny():
		return "anything"
	}
	terms := r.Terms()
	parts := make([]string, len(terms))
	for i, term := range terms {
		parts[i] = string(term.Operator)
		if len(term.Values) == 0 {
			continue
		}
		more := ""
		if hidden := len(term.Values) - shownValues; hidden > 0 {
			more = fmt.Sprintf(" and %d more", hidden)
		}
		parts[i] += " [" + strings.Join(term.Values[:min(len(term.Values), shownValues)], ", ") + more + "]"
	}
	return strings.Join(parts, " and ")
}

// conflicts returns the labels for which folded allows nothing that an instance type has, ordered by key. policy and
// user are the two parts of folded.
func conflicts(policy, user, folded fold.Set, vocabulary Vocabulary) []Conflict {
	var list []Conflict
	for left := range folded.All() {
		if key := left.Key(); left.Empty() || vocabulary[key] && !left.AllowsPresent() {
			list = append(list, Conflict{Key: key, Policy: policy.Get(key), User: user.Get(key), Left: left})
		}
	}
	return list
}

// passedBy reports whether Karpenter would launch nodes in spite of a contradiction with the policy: see [Vocabulary].
// A label that only the user contradicts, and the policy does not name, does not concern the policy.
func passedBy(list []Conflict, policy fold.Set, vocabulary Vocabulary) bool {
	return slices.ContainsFunc(list, func(c Conflict) bool { return policy.Holds(c.Key) && !vocabulary[c.Key] })
}

// asRead returns user entries as Karpenter reads them. Karpenter's API accepts values with Exists and DoesNotExist,
// and ignores them (K4). The policy's entries need no such reading: Check refuses such values.
func asRead(entries []fold.Requirement) []fold.Requirement {
	read := slices.Clone(entries)
	for i := range read {
		if read[i].Operator == fold.Exists || read[i].Operator == fold.DoesNotExist {
			read[i].Values = nil
		}
	}
	return read
}

// shortages compares the minValues of entries with what is left for their labels. Labels with nothing left are
// conflicts already.
func shortages(entries []fold.Requirement, folded fold.Set) []Shortage {
	_, counts, _ := fold.Of(entries) // whoever calls has looked at the error
	var list []Shortage
	for _, count := range counts {
		left := folded.Get(count.Key)
		values, finite := left.Values()
		if finite && !left.Empty() && len(values) < count.Count {
			list = append(list, Shortage{Key: count.Key, Want: count.Count, Left: left})
		}
	}
	return list
}

// identity returns the same text for exact duplicates: entries with the same key, operator, minValues, and values in
// any order (G12).
func identity(entry fold.Requirement) string {
	values := slices.Clone(entry.Values)
	slices.Sort(values)
	minValues := "any"
	if entry.MinValues != nil {
		minValues = strconv.Itoa(*entry.MinValues)
	}
	return fmt.Sprintf("%q %q %q %s", entry.Key, entry.Operator, slices.Compact(values), minValues)
}
