package claim_test

import (
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

func stamp(after time.Duration) string { return controllertest.Start().Add(after).Format(time.RFC3339) }

// L-14: the record on a claim before a launch bounds when it may land. A process uses its own record again while 20 s
// of it are left. A process that takes over from another, which may still have a launch under way, records that, and
// never shortens a record.
func TestWhatIsRecordedBeforeALaunch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, holder string
		want          string
		notAfter      time.Duration
	}{
		"none":                   {"", "a", stamp(time.Minute) + " a", time.Minute},
		"none, no name":          {"", "", stamp(time.Minute) + " several", time.Minute},
		"own, 20s left":          {stamp(20*time.Second) + " a", "a", stamp(20*time.Second) + " a", 20 * time.Second},
		"own, 19s left":          {stamp(19*time.Second) + " a", "a", stamp(time.Minute) + " a", time.Minute},
		"own, ended":             {stamp(-time.Hour) + " a", "a", stamp(time.Minute) + " a", time.Minute},
		"own, edited to be long": {stamp(time.Hour) + " a", "a", stamp(time.Hour) + " a", time.Minute},
		"several, 20s left": {stamp(20*time.Second) + " several", "a", stamp(20*time.Second) + " several",
			20 * time.Second},
		"several, 19s left": {stamp(19*time.Second) + " several", "a", stamp(time.Minute) + " several",
			time.Minute},
		"another's":             {stamp(30*time.Second) + " b", "a", stamp(time.Minute) + " several", time.Minute},
		"another's, long":       {stamp(time.Hour) + " b", "a", stamp(time.Hour) + " several", time.Minute},
		"another's, just ended": {stamp(-59*time.Second) + " b", "a", stamp(time.Minute) + " several", time.Minute},
		"another's, a skew ago": {stamp(-time.Minute) + " b", "a", stamp(time.Minute) + " a", time.Minute},
		"nonsense":              {"soon a", "a", stamp(time.Minute) + " several", time.Minute},
		"no holder":             {stamp(30 * time.Second), "a", stamp(time.Minute) + " several", time.Minute},
		"no holder, long ago":   {stamp(-time.Hour), "a", stamp(time.Minute) + " several", time.Minute},
		"no holder, no name":    {stamp(30 * time.Second), "", stamp(time.Minute) + " several", time.Minute},
	} {
		one := made("c1", "pool-uid")
		if c.known != "" {
			one.Annotations = map[string]string{karpenterv1.LaunchUntilAnnotationKey: c.known}
		}
		r := newRig(t, hardPool(1), one)
		r.holder(c.holder)
		r.reconcile(t)
		if got := r.claim(t).Annotations[karpenterv1.LaunchUntilAnnotationKey]; got != c.want {
			t.Errorf("%s: the record is %q, want %q", name, got, c.want)
		}
		if got := r.cloud.notAfter.Sub(controllertest.Start()); r.cloud.launches != 1 || got != c.notAfter {
			t.Errorf("%s: %d launches, which may land for %s; want one, for %s", name, r.cloud.launches, got,
				c.notAfter)
		}
	}
}

// L-14: a record has whole seconds, and a launch does not outlast it by a part of one.
func TestALaunchDoesNotOutlastItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	r.clock.Advance(700 * time.Millisecond)
	r.holder("a")
	r.reconcile(t)
	if got := r.cloud.notAfter.Sub(controllertest.Start()); got != time.Minute {
		t.Errorf("the launch may land for %s, and the record %q ends after 1m", got,
			r.claim(t).Annotations[karpenterv1.LaunchUntilAnnotationKey])
	}
}

// L-14: a deleted claim goes at once only if this process has the record and all its launches were refused. Otherwise
// it stays until nothing can land that the list would not show: the record's time, clock skew and the lag of lists.
// Without a readable record it stays as long after its deletion as a launch could take.
func TestHowLongADeletedClaimWaits(t *testing.T) {
	t.Parallel()
	lag := provider.ClockSkew + provider.ListLag
	for name, c := range map[string]struct {
		record string // by hand, after the launch was refused
		holder string
		launch bool // a launch was refused
		waits  time.Duration
	}{
		"refused":                 {stamp(time.Minute) + " a", "a", true, 0},
		"refused, long record":    {stamp(time.Hour) + " a", "a", true, 0},
		"never launched":          {stamp(time.Minute) + " a", "a", false, time.Minute + lag},
		"another may":             {stamp(time.Minute) + " several", "a", true, time.Minute + lag},
		"nonsense":                {"soon a", "a", true, provider.LaunchFor + provider.ClockSkew + lag},
		"never launched, no name": {stamp(time.Minute) + " several", "", false, time.Minute + lag},
	} {
		r := newRig(t, hardPool(1), made("c1", "pool-uid"))
		r.holder(c.holder)
		if c.launch {
			r.cloud.failure = &provider.InsufficientCapacityError{}
			r.reconcile(t)
		}
		one := r.claim(t)
		one.Annotations = map[string]string{karpenterv1.LaunchUntilAnnotationKey: c.record}
		if err := r.server.Update(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if one.DeletionTimestamp == nil {
			r.delete(t)
		}
		passed := r.claim(t).DeletionTimestamp.Sub(controllertest.Start()) // the server's clock is not the test's
		if c.record == "soon a" {
			c.waits += passed
		}
		if c.waits > 0 {
			r.clock.Advance(c.waits - 1)
			if result := r.reconcile(t); r.claim(t) == nil || result.RequeueAfter != 1 {
				t.Errorf("%s: gone %t 1ns before %s, asks again after %s", name, r.claim(t) == nil, c.waits,
					result.RequeueAfter)
				continue
			}
			r.clock.Advance(1)
		}
		if r.reconcile(t); r.claim(t) != nil {
			t.Errorf("%s: still there after %s", name, c.waits)
		}
	}
}
