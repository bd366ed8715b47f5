package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// Pool is the part of a user's pool that folds into requirements (K1).
type Pool struct {
	// Name is the name of the pool. Its nodes carry it as a label.
	Name string
	// NodeClass is the node class that the pool will be written with; see [ResolveNodeClass]. It is ignored when Kind
	// is empty.
	NodeClass NodeClass
	// Labels are the labels of the template. Nodes get them, so they restrict like entries.
	Labels map[string]string
	// Requirements are the pool's own entries.
	Requirements []fold.Requirement
}

// Merged is the result of [MergeRequirements].
type Merged struct {
	// Requirements is the list to write. It is nil only if there are Problems: then an existing pool stays as it is,
	// and a missing one is not created (G12, G14).
	Requirements []fold.Requirement
	// Problems keep the pool from being written.
	Problems []Problem
	// Folded is what policy and pool together allow, including template labels, name and node class (K1).
	Folded fold.Set
	// Conflicts are the labels for which nothing is left, ordered by key (G9). Write the list nevertheless: it
	// launches no node (R13).
	Conflicts []Conflict
	// MinValues are the labels with fewer values left than minValues asks for, ordered by key (G11). minValues is
	// never lowered.
	MinValues []Shortage
	// Closed says that the list ends with an entry that no instance type satisfies. Without it, Karpenter would launch
	// nodes in spite of the conflict (G10).
	Closed bool
}

// Compatible returns the condition for the users of the pool (G9, G11). Its status is Unknown when nothing was merged.
func (m Merged) Compatible() Condition {
	switch {
	case len(m.Problems) > 0:
		return Condition{Unknown, m.Problems[0].Reason, "not merged: " + Join(m.Problems)}
	case len(m.Conflicts) > 0:
		return Condition{False, ReasonNoCompatibleInstanceTypes, Join(m.Conflicts)}
	case len(m.MinValues) > 0:
		return Condition{False, ReasonMinValuesUnsatisfiable, Join(m.MinValues)}
	}
	return Condition{True, ReasonCompatible, ""}
}

// shownProblems bounds a message that lists problems or conflicts: a policy may have a hundred entries, each with a
// problem.
const shownProblems = 10

// Join returns the items in one line, separated by semicolons: the first 10, then how many more there are.
func Join[T fmt.Stringer](list []T) string {
	parts := make([]string, 0, shownProblems+1)
	for i, item := range list {
		if i == shownProblems {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		parts = append(parts, item.String())
	}
	return strings.Join(parts, "; ")
}

// MergeRequirements merges a policy, nil for none, with a pool (R10 to R18). The entries of the policy come first,
// then those of the pool, unchanged and in order (R10). vocabulary is the set of labels that every instance type of
// the provider has; nil means [CommonVocabulary]. The result shares nothing with the arguments. A policy that fails
// [Check] results in a Problem (G14).
func MergeRequirements(p *Policy, pool Pool, vocabulary Vocabulary) Merged {
	result := Merged{Problems: Invalid(p)}
	if len(result.Problems) > 0 {
		return result
	}
	var provided []fold.Requirement
	if p != nil {
		provided = p.Requirements
	}
	policySet, _, _ := fold.Of(provided) // Check has seen that there is no error
	userSet, problem := userPart(pool)
	if problem != nil {
		result.Problems = []Problem{*problem}
		return result
	}
	result.Folded = policySet.And(userSet)
	if vocabulary == nil {
		vocabulary = CommonVocabulary()
	}
	result.Conflicts = conflicts(policySet, userSet, result.Folded, vocabulary)
	result.MinValues = shortages(slices.Concat(provided, asRead(pool.Requirements)), result.Folded)
	var closing []fold.Requirement
	if result.Closed = passedBy(result.Conflicts, policySet, vocabulary); result.Closed {
		closing = append(closing, impossible())
	}
	merged, problem := concatenate(provided, pool.Requirements, closing)
	if problem != nil {
		result.Problems = []Problem{*problem}
		return result
	}
	result.Requirements = merged
	return result
}

// Invalid returns one Problem if the policy fails [Check], and none for a nil policy. It gives no details, because it
// goes to the status of wrappers, which users of the guest read. They may not read policies (R8).
func Invalid(p *Policy) []Problem {
	if p == nil {
		return nil
	}
	problems := Check(*p)
	if len(problems) == 0 {
		return nil
	}
	return []Problem{
		{problems[0].Reason, "policy of the provider",
			"is not valid, and so not applied; what was applied before stays"},
	}
}

// userPart folds the pool's own part: its entries, labels, name and node class.
func userPart(pool Pool) (fold.Set, *Problem) {
	set, _, err := fold.Of(asRead(pool.Requirements))
	if err != nil {
		message := "cannot be understood: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		return set, &Problem{ReasonInvalidRequirements, "spec.template.spec.requirements", message}
	}
	fixed := []fold.Allowed{fold.OneOf(nodePoolLabel, pool.Name)}
	for label, value := range pool.Labels {
		fixed = append(fixed, fold.OneOf(fold.Canonical(label), value))
	}
	if pool.NodeClass.Kind != "" {
		fixed = append(fixed, fold.OneOf(pool.NodeClass.label(), pool.NodeClass.Name))
	}
	return set.And(fold.NewSet(fixed...)), nil
}

// concatenate joins the parts of the list. If there are too many entries, it leaves out user entries that duplicate an
// entry of the policy or an earlier one of the user: that changes nothing (G12). It never leaves out an entry of the
// policy, or one that restricts.
func concatenate(provided, own, closing []fold.Requirement) ([]fold.Requirement, *Problem) {
	if len(provided)+len(own)+len(closing) > MaxRequirements {
		own = withoutDuplicates(provided, own)
	}
	merged := make([]fold.Requirement, 0, len(provided)+len(own)+len(closing)) // never nil: NodePools need the list
	for _, entry := range slices.Concat(provided, own, closing) {
		merged = append(merged, entry.Clone())
	}
	if len(merged) <= MaxRequirements {
		return merged, nil
	}
	message := fmt.Sprintf("has %d different entries, and the policy %d", len(own), len(provided))
	if len(closing) > 0 {
		message += ", and one more is needed since they contradict each other"
	}
	message += fmt.Sprintf(": a NodePool takes at most %d", MaxRequirements)
	return nil, &Problem{ReasonTooManyRequirements, "spec.template.spec.requirements", message}
}

func withoutDuplicates(provided, own []fold.Requirement) []fold.Requirement {
	seen := map[string]bool{}
	for _, entry := range provided {
		seen[identity(entry)] = true
	}
	var kept []fold.Requirement
	for _, entry := range own {
		if id := identity(entry); !seen[id] {
			seen[id] = true
			kept = append(kept, entry)
		}
	}
	return kept
}
