package template_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
)

// collect deletes templates that were unused for an hour, while the clock runs.
func (a *account) collect(k *template.Keeper) (names []string, err error) {
	a.t.Helper()
	a.moving(100*time.Millisecond, func() { names, err = k.Collect(a.t.Context(), a.clock.Now(), template.UnusedFor) })
	return names, err
}

// E-56: templates without a launch for an hour are deleted, whoever made them, and no others.
func TestUnusedTemplatesGo(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.SetPageSize(2)
	k := a.keeper()
	a.ensure(k, 0, 1, 2, 3)
	a.strange("karpenter.k8s.aws/another-process", "c1")
	a.strange("karpenter.k8s.aws/another-cluster", "c2")
	a.strange("somebody-elses", "c1")
	a.clock.Advance(59 * time.Minute)
	a.ensure(k, 1) // used
	a.ensure(k, 4) // made
	a.strange("karpenter.k8s.aws/made-by-another-process", "c1")
	if names, err := a.collect(k); err != nil || len(names) != 0 {
		t.Errorf("%v, %v after 59 minutes", names, err)
	}
	a.clock.Advance(time.Minute)
	names, err := a.collect(k)
	if err != nil || len(names) != 4 || !slices.Contains(names, "karpenter.k8s.aws/another-process") {
		t.Errorf("deleted %v, %v", names, err)
	}
	if a.left() != "1 4 +3" {
		t.Errorf("left: %s", a.left())
	}
	a.ensure(k, 0) // deleted ones are made again
	if a.left() != "0 1 4 +3" {
		t.Errorf("left: %s", a.left())
	}
}

// unfiltered is a client of a server that ignores filters of launch templates, like moto.
type unfiltered struct{ *ec2.Client }

func (u unfiltered) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput,
	options ...func(*ec2.Options)) (
	*ec2.DescribeLaunchTemplatesOutput, error,
) {
	all := *in
	all.Filters = nil
	return u.Client.DescribeLaunchTemplates(ctx, &all, options...)
}

// E-64: another cluster's templates stay, even if the server lists them despite the filter.
func TestOthersTemplatesStay(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.strange("karpenter.k8s.aws/another-cluster", "c2")
	a.strange("karpenter.k8s.aws/another-process", "c1")
	k := template.NewKeeper(t.Context(), unfiltered{a.client}, a.clock, "c1")
	a.clock.Advance(2 * time.Hour)
	if names, err := a.collect(k); err != nil || !slices.Equal(names, []string{"karpenter.k8s.aws/another-process"}) {
		t.Errorf("deleted %v, error %v, want this cluster's alone", names, err)
	}
}

// E-56: after a restart earlier launches are unknown, so a template counts as used when the process began.
func TestARestartIsAUse(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.ensure(a.keeper(), 1, 2)
	a.clock.Advance(24 * time.Hour)
	k := a.keeper()
	a.clock.Advance(59 * time.Minute)
	a.ensure(k, 2)
	if names, err := a.collect(k); err != nil || len(names) != 0 {
		t.Errorf("%v, %v 59 minutes after a restart", names, err)
	}
	a.clock.Advance(time.Minute)
	if names, err := a.collect(k); err != nil || len(names) != 1 || a.left() != "2 +0" {
		t.Errorf("%v, %v, left %s", names, err, a.left())
	}
}

// timed records when templates are deleted.
type timed struct {
	*ec2.Client
	a  *account
	at chan time.Time
}

func (c timed) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, o ...func(*ec2.Options)) (
	*ec2.DeleteLaunchTemplateOutput, error) {
	c.at <- c.a.clock.Now()
	return c.Client.DeleteLaunchTemplate(ctx, in, o...)
}

// E-56: at most one deletion a second, the oldest first, for all collections together.
func TestDeletionsArePaced(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	deletions := make(chan time.Time, 100)
	k := template.NewKeeper(t.Context(), timed{a.client, a, deletions}, a.clock, "c1")
	for i := range 6 {
		a.ensure(k, i)
		a.clock.Advance(time.Minute)
	}
	a.clock.Advance(2 * time.Hour)
	began := a.clock.Now()
	results := make(chan int, 2)
	a.moving(100*time.Millisecond, func() {
		done := make(chan struct{})
		for range 2 {
			go func() {
				names, err := k.Collect(t.Context(), began, template.UnusedFor)
				if err != nil {
					t.Error(err)
				}
				results <- len(names)
				done <- struct{}{}
			}()
		}
		<-done
		<-done
	})
	if n := <-results + <-results; n != 6 || a.left() != " +0" {
		t.Errorf("%d were deleted, left %s", n, a.left())
	}
	close(deletions)
	var before time.Time
	for at := range deletions {
		if at.Sub(before) < time.Second {
			t.Errorf("a deletion at %s, %s after the one before", at, at.Sub(before))
		}
		before = at
	}
	if took := before.Sub(began); took < 5*time.Second {
		t.Errorf("the last of six deletions was after %s", took)
	}
}

// E-56, E-03: one template that may not be deleted does not block the others; throttling ends the collection.
func TestCollectionsThatAreRefused(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	k := a.keeper()
	a.ensure(k, 0, 1, 2)
	a.strange("karpenter.k8s.aws/locked", "c1")
	a.clock.Advance(2 * time.Hour)
	a.Deny(func(ask ec2test.Ask) string {
		if ask.Action == "ec2:DeleteLaunchTemplate" && ask.ResourceTags[tag.Pool] == "p" {
			return "because no policy allows it"
		}
		return ""
	})
	two := map[string]ec2test.Bucket{"ec2:DeleteLaunchTemplate": {Burst: 2}}
	if err := a.SetFaults(ec2test.Faults{Throttle: two}); err != nil {
		t.Fatal(err)
	}
	names, err := a.collect(k)
	if refusal.Of(err).Class == "" || len(names) > 2 || len(a.LaunchTemplates()) != 4-len(names) {
		t.Errorf("deleted %v, %v, left %s", names, err, a.left())
	}
	if n := a.Counts()["ec2:DeleteLaunchTemplate"]; n != 3 {
		t.Errorf("%d calls, want that the third, which was throttled, was the last", n)
	}
	if err := a.SetFaults(ec2test.Faults{}); err != nil {
		t.Fatal(err)
	}
	_, err = a.collect(k)
	if err == nil || !strings.Contains(err.Error(), "karpenter.k8s.aws/locked") || a.left() != " +1" {
		t.Errorf("%v, left %s", err, a.left())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Collect(ctx, a.clock.Now(), template.UnusedFor); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// slow holds deletions back until it is opened.
type slow struct {
	*ec2.Client
	began, open chan struct{}
}

func (s slow) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, o ...func(*ec2.Options)) (
	*ec2.DeleteLaunchTemplateOutput, error) {
	s.began <- struct{}{}
	<-s.open
	return s.Client.DeleteLaunchTemplate(ctx, in, o...)
}

// watched reports when a caller begins to wait.
type watched struct {
	context.Context
	asked chan struct{}
}

func (w watched) Done() <-chan struct{} {
	w.asked <- struct{}{}
	return w.Context.Done()
}

// E-30, E-56: a launch that needs a template which is just being deleted gets a new one.
func TestALaunchDuringADeletion(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	s := slow{a.client, make(chan struct{}), make(chan struct{})}
	k := template.NewKeeper(t.Context(), s, a.clock, "c1")
	a.ensure(k, 1)
	a.clock.Advance(2 * time.Hour)
	collected := make(chan error)
	go func() {
		_, err := k.Collect(t.Context(), a.clock.Now(), template.UnusedFor)
		collected <- err
	}()
	<-s.began
	launched := make(chan error, 1)
	waits := watched{t.Context(), make(chan struct{}, 10)}
	go func() { launched <- k.Ensure(waits, a.numbered(1)) }()
	select {
	case <-waits.asked:
	case err := <-launched:
		t.Fatalf("%v: the launch did not wait for the end of the deletion", err)
	}
	close(s.open)
	if err := errors.Join(<-collected, <-launched); err != nil || a.left() != "1 +0" {
		t.Errorf("%v, left %s", err, a.left())
	}
}
