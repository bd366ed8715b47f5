package translate

import (
	"fmt"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// D-08: how many disruptions budgets still allow; which budget decides; and when time changes that.
func TestAllowedDisruptions(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	night := budget("0", "0 22 * * *", 8*time.Hour)
	noReasons := budget("4", "", 0)
	noReasons.Reasons = []karpenterv1.DisruptionReason{}
	for name, row := range map[string]struct {
		budgets []karpenterv1.Budget
		hour    int
		want    string
	}{
		"no budget": {nil, 9, "Drifted - ; Empty - ; Underutilized - ; never"},
		"less what is under way": {[]karpenterv1.Budget{budget("50%", "", 0, "Empty")}, 9,
			"Drifted - ; Empty 3 spec.disruption.budgets[0]: 50%; Underutilized - ; never"},
		"one reason": {[]karpenterv1.Budget{budget("4", "", 0, "Empty")}, 9,
			"Drifted - ; Empty 2 spec.disruption.budgets[0]: 4; Underutilized - ; never"},
		"a list of no reasons is every reason": {[]karpenterv1.Budget{noReasons}, 9,
			"Drifted 2 spec.disruption.budgets[0]: 4; Empty 2 spec.disruption.budgets[0]: 4; " +
				"Underutilized 2 spec.disruption.budgets[0]: 4; never"},
		"before a window": {[]karpenterv1.Budget{night}, 9, "Drifted - ; Empty - ; Underutilized - ; 22:00"},
		"within a window": {[]karpenterv1.Budget{night}, 23,
			"Drifted 0 spec.disruption.budgets[0]: 0; Empty 0 spec.disruption.budgets[0]: 0; " +
				"Underutilized 0 spec.disruption.budgets[0]: 0; 06:00"},
		"windows that are joined": {[]karpenterv1.Budget{budget("9", "0 9,10,11 * * *", time.Hour, "Empty")}, 9,
			"Drifted - ; Empty 7 spec.disruption.budgets[0]: 9; Underutilized - ; 12:00"},
	} {
		pool := kwokPool()
		pool.Spec.Disruption.Budgets = row.budgets
		got := AllowedDisruptions(pool, monday.Add(time.Duration(row.hour)*time.Hour), 10, 2)
		text := ""
		for _, a := range got.Allowed {
			nodes := "-"
			if a.Nodes != nil {
				nodes = fmt.Sprint(*a.Nodes)
			}
			text += fmt.Sprintf("%s %s %s; ", a.Reason, nodes, a.Budget)
		}
		if got.NextChange == nil {
			text += "never"
		} else {
			text += got.NextChange.Format("15:04")
		}
		if text != row.want {
			t.Errorf("%s: %s\nwant %s", name, text, row.want)
		}
	}
}
