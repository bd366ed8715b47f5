package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// ConditionType is the type of the policy's condition that says whether the guest is as the policy wants it.
const ConditionType = hypershiftv1beta1.ConditionTypeConforming

// Reasons of the condition.
const (
	ReasonConforms      = "Conforms"
	ReasonNoObjects     = "NoObjects"
	ReasonNotConforming = "NotConforming"
	ReasonNotChecked    = "NotChecked"
	ReasonReplacing     = "Replacing"
)

// Count is how many objects of a kind are in a state, for a cause. An object with several findings counts once, with
// its gravest state and, among the findings with that state, the cause that comes first by name.
type Count struct {
	Kind    string
	State   State
	Cause   Cause // "" for those that conform
	Party   Party
	Objects int
}

// Report is the result of [Look].
type Report struct {
	// Findings are ordered by kind, name, field and cause.
	Findings []Finding
	// Counts are ordered by kind, state and cause.
	Counts []Count
	// Objects is how many objects were judged, without the policy.
	Objects int
}

func newReport(found []Finding, judged map[Product]State) Report {
	report := Report{Findings: found}
	causes := map[Product]Cause{}
	for _, f := range found {
		product := Product{f.Kind, f.Name}
		if f.State != judged[product] {
			continue
		}
		cause := f.Cause
		if before, told := causes[product]; told {
			cause = min(cause, before)
		}
		causes[product] = cause
	}
	counts := map[Count]int{}
	for product, state := range judged {
		cause := causes[product]
		counts[Count{Kind: product.Kind, State: state, Cause: cause, Party: cause.Party()}]++
		if product.Kind != Policy {
			report.Objects++
		}
	}
	for count, objects := range counts {
		count.Objects = objects
		report.Counts = append(report.Counts, count)
	}
	slices.SortFunc(report.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.State, b.State), cmp.Compare(a.Cause, b.Cause))
	})
	return report
}

// shownNames bounds how many objects the condition names.
const shownNames = 10

// Condition returns the condition of the policy, by the gravest state of any object.
func (r Report) Condition() condition.Value {
	worst := Conforms
	for _, count := range r.Counts {
		worst = graver(worst, count.State)
	}
	switch {
	case worst == NotConforming:
		return condition.False(ConditionType, ReasonNotConforming, r.tell(worst))
	case worst == NotKnown:
		return condition.Unknown(ConditionType, ReasonNotChecked, r.tell(worst))
	case worst == Replacing:
		return condition.Unknown(ConditionType, ReasonReplacing, r.tell(worst))
	case r.Objects == 0:
		return condition.True(ConditionType, ReasonNoObjects, "")
	}
	return condition.True(ConditionType, ReasonConforms, "")
}

// tell returns the counts by cause, and at most ten names.
func (r Report) tell(state State) string {
	byCause := map[Cause]int{}
	for _, count := range r.Counts {
		if count.State == state {
			byCause[count.Cause] += count.Objects
		}
	}
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(byCause)) {
		whose := ""
		if party := cause.Party(); party != Nobody {
			whose = fmt.Sprintf(" (%s)", party)
		}
		parts = append(parts, fmt.Sprintf("%d %s%s", byCause[cause], cause, whose))
	}
	var names []string
	for _, f := range r.Findings {
		if name := f.Kind + " " + f.Name; f.State == state && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	more := ""
	if hidden := len(names) - shownNames; hidden > 0 {
		more = fmt.Sprintf(" and %d more", hidden)
	}
	return strings.Join(parts, ", ") + ": " + strings.Join(names[:min(len(names), shownNames)], ", ") + more
}
