package translate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // an image without files has no zones of its own

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// ActiveBudgets returns the disruption budgets of a pool that are in force at now (V-07). Percentages are of nodes,
// rounded up. To protect the user, a budget that cannot be understood counts as 0 nodes and always in force; the error
// names it. An empty result means that nothing is limited. A pool whose disruption is paused has one of 0 nodes
// (K-52).
func ActiveBudgets(pool *karpenterv1.NodePool, now time.Time, nodes int) ([]engine.Budget, error) {
	var active []engine.Budget
	var errs []error
	for i, budget := range pool.Spec.Disruption.Budgets {
		most, inForce, err := budgetInForce(budget, now, nodes)
		if err != nil {
			errs = append(errs, fmt.Errorf("NodePool %s: spec.disruption.budgets[%d]: %w", pool.Name, i, err))
		}
		if inForce {
			active = append(active, engine.Budget{Reasons: budgetReasons(budget), Max: most})
		}
	}
	if PoolPauseOf(pool).Disrupt {
		active = []engine.Budget{{Max: 0}}
	}
	return active, errors.Join(errs...)
}

// budgetInForce returns what one budget allows and whether it is in force. With an error it returns 0 and true.
func budgetInForce(budget karpenterv1.Budget, now time.Time, nodes int) (most int, inForce bool, err error) {
	inForce, activeErr := budgetActive(budget, now)
	most, countErr := budgetNodes(budget.Nodes, nodes)
	if err := errors.Join(activeErr, countErr); err != nil {
		return 0, true, err
	}
	return most, inForce, nil
}

func budgetReasons(budget karpenterv1.Budget) []plan.DisruptionReason {
	var reasons []plan.DisruptionReason // stays nil for none: the budget then holds for every reason
	for _, reason := range budget.Reasons {
		reasons = append(reasons, plan.DisruptionReason(reason))
	}
	return reasons
}

// budgetActive reports whether the schedule has hit within the duration before now. The end is not included.
func budgetActive(budget karpenterv1.Budget, now time.Time) (bool, error) {
	if budget.Schedule == nil && budget.Duration == nil && budget.TimeZone == nil {
		return true, nil
	}
	if budget.Schedule == nil || budget.Duration == nil {
		return false, errors.New("schedule and duration come together or not at all")
	}
	schedule, err := scheduleOf(budget)
	if err != nil {
		return false, err
	}
	hit := schedule.Next(now.UTC().Add(-budget.Duration.Duration))
	return !hit.IsZero() && !hit.After(now), nil // zero: not within five years
}

// NextBudgetChange returns when a disruption budget of the pool next comes into force or ends; zero when none does.
func NextBudgetChange(pool *karpenterv1.NodePool, now time.Time) time.Time {
	var next time.Time
	for _, budget := range pool.Spec.Disruption.Budgets {
		if budget.Schedule == nil || budget.Duration == nil {
			continue
		}
		schedule, err := scheduleOf(budget)
		if err != nil {
			continue
		}
		at := schedule.Next(now.UTC().Add(-budget.Duration.Duration))
		if !at.IsZero() && !at.After(now) {
			at = at.Add(budget.Duration.Duration)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// scheduleOf reads the schedule of a budget that has one: five fields or a macro, in its time zone or in UTC (K-56).
// The parser also knows time zones within the text and @every. These are refused, as the API refuses them.
func scheduleOf(budget karpenterv1.Budget) (cron.Schedule, error) {
	text, zone := *budget.Schedule, time.UTC
	if budget.TimeZone != nil {
		var err error
		if zone, err = time.LoadLocation(*budget.TimeZone); err != nil || zone == time.Local ||
			*budget.TimeZone == "" {
			return nil, fmt.Errorf("timeZone is %q: want a name of the IANA database such as Europe/Berlin or UTC",
				*budget.TimeZone)
		}
	}
	schedule, err := cron.ParseStandard("TZ=" + zone.String() + " " + text)
	if err == nil && (strings.Contains(text, "TZ=") || strings.HasPrefix(strings.TrimSpace(text), "@every")) {
		err = errors.New("@every is not supported, and a time zone stands in the field timeZone")
	}
	if err != nil {
		return nil, fmt.Errorf(
			"schedule is %q: want five cron fields or a macro such as @daily, in UTC or in timeZone: %w", text, err)
	}
	if schedule.Next(leapYear).IsZero() { // as good as none: February 30
		return nil, fmt.Errorf("schedule is %q: it names no moment, since no month that it names has such a day", text)
	}
	return schedule, nil
}

// leapYear is where the search for the first moment of a schedule begins: every day of the calendar follows soon.
var leapYear = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func budgetNodes(value intstr.IntOrString, nodes int) (int, error) {
	text := value.String()
	digits, percent := strings.CutSuffix(text, "%")
	number, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || number < 0 || percent && number > 100 {
		return 0, fmt.Errorf("nodes is %q: want a number of nodes such as 5, or a share such as 10%%", text)
	}
	if !percent {
		return int(number), nil
	}
	return (nodes*int(number) + 99) / 100, nil
}
