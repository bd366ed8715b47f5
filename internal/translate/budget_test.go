package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func budget(nodes, schedule string, duration time.Duration,
	reasons ...karpenterv1.DisruptionReason) karpenterv1.Budget {
	b := karpenterv1.Budget{Nodes: intstr.Parse(nodes), Reasons: reasons}
	if schedule != "" {
		b.Schedule, b.Duration = &schedule, &karpenterv1.Duration{Duration: duration}
	}
	return b
}

func in(zone string, b karpenterv1.Budget) karpenterv1.Budget {
	b.TimeZone = &zone
	return b
}

func TestBudgetsInForce(t *testing.T) { // V-07, K-56
	t.Parallel()
	monday9 := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	summer := time.Date(2026, 3, 29, 1, 45, 0, 0, time.UTC) // in Berlin 3:45, three quarters of an hour after 1:59
	for name, row := range map[string]struct {
		budget karpenterv1.Budget
		now    time.Time
		nodes  int
		want   string
	}{
		"a number":              {budget("5", "", 0), monday9, 100, "[{[] 5}]"},
		"a share is rounded up": {budget("10%", "", 0), monday9, 11, "[{[] 2}]"},
		"a share of nothing":    {budget("10%", "", 0), monday9, 0, "[{[] 0}]"},
		"all":                   {budget("100%", "", 0), monday9, 7, "[{[] 7}]"},
		"reasons are kept": {budget("1", "", 0, "Empty", "Drifted"), monday9, 7,
			"[{[Empty Drifted] 1}]"},
		"at the hit": {budget("0", "0 9 * * mon-fri", 8*time.Hour), monday9, 7, "[{[] 0}]"},
		"before the hit": {budget("0", "0 9 * * mon-fri", 8*time.Hour), monday9.Add(-time.Second), 7,
			"[]"},
		"just before the end": {budget("0", "0 9 * * mon-fri", 8*time.Hour),
			monday9.Add(8*time.Hour - time.Second), 7, "[{[] 0}]"},
		"at the end": {budget("0", "0 9 * * mon-fri", 8*time.Hour), monday9.Add(8 * time.Hour),
			7, "[]"},
		"a macro": {budget("0", "@daily", time.Hour), monday9.Add(-8*time.Hour - time.Minute),
			7, "[{[] 0}]"},
		"UTC, whatever the caller's clock": {budget("0", "0 9 * * *", time.Hour),
			monday9.In(time.FixedZone("", 5*3600)), 7, "[{[] 0}]"},
		"in its time zone": {in("Asia/Tokyo", budget("0", "0 18 * * mon", time.Hour)), monday9, 7,
			"[{[] 0}]"},
		"not at the same hour of UTC": {in("Asia/Tokyo", budget("0", "0 9 * * *", time.Hour)), monday9, 7, "[]"},
		"in winter": {in("Europe/Berlin", budget("0", "0 10 * * *", time.Hour)), monday9, 7,
			"[{[] 0}]"},
		"in summer": {in("Europe/Berlin", budget("0", "0 11 * * *", time.Hour)),
			monday9.AddDate(0, 1, 0), 7, "[{[] 0}]"},
		"a day of leap years": {budget("0", "0 9 29 2 *", time.Hour), monday9, 7, "[]"},
		"an hour that summer time skips": {in("Europe/Berlin", budget("0", "30 2 29 3 *", time.Hour)), summer, 7,
			"[]"},
	} {
		pool := kwokPool()
		pool.Spec.Disruption.Budgets = []karpenterv1.Budget{row.budget}
		got, err := ActiveBudgets(pool, row.now, row.nodes)
		if text := fmt.Sprint(got); err != nil || text != row.want {
			t.Errorf("%s: got %s, %v; want %s", name, text, err, row.want)
		}
	}
}

func TestBudgetThatCannotBeReadAllowsNothing(t *testing.T) { // V-07
	t.Parallel()
	half := budget("3", "0 9 * * *", time.Hour, "Empty")
	half.Duration = nil
	for want, b := range map[string]karpenterv1.Budget{
		`schedule is "whenever"`:         budget("3", "whenever", time.Hour, "Empty"),
		`schedule is "@every 5m"`:        budget("3", "@every 5m", time.Hour, "Empty"),
		`schedule is "TZ=Asia/Tokyo `:    budget("3", "TZ=Asia/Tokyo 0 9 * * *", time.Hour, "Empty"),
		`"0 9 30 2 *": it names no mome`: budget("3", "0 9 30 2 *", time.Hour, "Empty"),
		`"0 9 31 4,6 *": it names no mo`: budget("3", "0 9 31 4,6 *", time.Hour, "Empty"),
		`timeZone is "Europe/Berlln"`:    in("Europe/Berlln", budget("3", "@daily", time.Hour, "Empty")),
		`timeZone is "Local"`:            in("Local", budget("3", "@daily", time.Hour, "Empty")),
		`timeZone is ""`:                 in("", budget("3", "@daily", time.Hour, "Empty")),
		"schedule and duration come to":  in("UTC", budget("3", "", 0, "Empty")),
		`nodes is "-1"`:                  budget("-1", "", 0, "Empty"),
		`nodes is "110%"`:                budget("110%", "", 0, "Empty"),
		"schedule and duration come":     half,
		"budgets[0]: nodes is \"ten\"":   budget("ten", "", 0, "Empty"),
	} {
		pool := kwokPool()
		pool.Spec.Disruption.Budgets = []karpenterv1.Budget{b}
		got, err := ActiveBudgets(pool, time.Now(), 10)
		if text := fmt.Sprint(got); text != "[{[Empty] 0}]" {
			t.Errorf("%s: budgets in force are %s", want, text)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "NodePool default") {
			t.Errorf("error %v; want it to say %s", err, want)
		}
	}
}

// V-07: when a budget next begins or ends to be in force.
func TestWhenBudgetsNextChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0 12 * * * 30m": 20 * time.Minute, "0 13 * * * 30m": 50 * time.Minute, "nonsense 30m": 0,
		"0 14 * * * 30m in Europe/Berlin": 50 * time.Minute,
		"0 13 * * * 30m in Europe/Berlin": 20 * time.Minute, "0 14 * * * 30m in Nowhere/Here": 0, "0 0 30 2 * 1h": 0,
	} {
		pool := &karpenterv1.NodePool{}
		text, zone, _ := strings.Cut(text, " in ")
		if at := strings.LastIndex(text, " "); at >= 0 {
			length, err := time.ParseDuration(text[at+1:])
			if err != nil {
				t.Fatal(err)
			}
			pool.Spec.Disruption.Budgets = []karpenterv1.Budget{
				{Schedule: new(text[:at]), Duration: &karpenterv1.Duration{Duration: length}},
			}
			if zone != "" {
				pool.Spec.Disruption.Budgets[0].TimeZone = &zone
			}
		}
		at := NextBudgetChange(pool, now)
		if at.IsZero() != (want == 0) || want != 0 && at.Sub(now) != want {
			t.Errorf("%q changes at %s, want %s from now", text, at, want)
		}
	}
}
