package template_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// account is an endpoint with a clock that the test moves.
type account struct {
	*ec2test.Server
	t      *testing.T
	clock  *timer.Fake
	client *ec2.Client
	others *ec2.Client // of somebody else in the account
}

func newAccount(t *testing.T, f ec2test.Faults) *account {
	t.Helper()
	clock := timer.NewFake(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	s := ec2test.Start(t, ec2test.Options{Now: clock.Now, Faults: f})
	s.AddCluster(ec2test.Cluster{Name: "c1"})
	once := func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }
	return &account{Server: s, t: t, clock: clock, client: ec2.NewFromConfig(s.Config(), once),
		others: ec2.NewFromConfig(s.OthersConfig(), once)}
}

func (a *account) keeper() *template.Keeper {
	return template.NewKeeper(a.t.Context(), a.client, a.clock, "c1")
}

// numbered is the content of one of many templates.
func (a *account) numbered(i int) *ec2.CreateLaunchTemplateInput {
	a.t.Helper()
	return content(a.t, ask(func(ask *template.Ask) { ask.UserData = fmt.Sprint(i) }))
}

func (a *account) ensure(k *template.Keeper, numbers ...int) {
	a.t.Helper()
	for _, i := range numbers {
		if err := k.Ensure(a.t.Context(), a.numbered(i)); err != nil {
			a.t.Fatal(err)
		}
	}
}

// left says which of the first ten numbered templates EC2 has, and how many others.
func (a *account) left() string {
	a.t.Helper()
	names := map[string]bool{}
	for _, name := range a.LaunchTemplates() {
		names[name] = true
	}
	var list []string
	for i := range 10 {
		if name := *a.numbered(i).LaunchTemplateName; names[name] {
			list = append(list, fmt.Sprint(i))
			delete(names, name)
		}
	}
	return fmt.Sprintf("%s +%d", strings.Join(list, " "), len(names))
}

// moving runs f and moves the clock whenever something waits for it, until f is done.
func (a *account) moving(step time.Duration, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			if a.clock.Waiting() > 0 {
				a.clock.Advance(step)
			}
		}
	}
}

// E-30: callers that need the same template share one call, and later ones make none.
func TestATemplateIsMadeOnce(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	k := a.keeper()
	in := a.numbered(1)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if err := k.Ensure(t.Context(), in); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	a.ensure(k, 1, 1)
	if counts := a.Counts(); counts["ec2:CreateLaunchTemplate"] != 1 || len(counts) != 1 {
		t.Errorf("%v, want one call", counts)
	}
	if in.ClientToken != nil {
		t.Error("what the caller gave was changed")
	}
	a.ensure(a.keeper(), 1) // another process: it is there already
	if counts := a.Counts(); counts["ec2:CreateLaunchTemplate"] != 2 || len(counts) != 1 || a.left() != "1 +0" {
		t.Errorf("%v, templates %s, want a second call and no second template", counts, a.left())
	}
}

// E-30: known templates are used for launches while none can be made; for others there is an error, and they are tried
// again.
func TestKnownTemplatesNeedNoAPI(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	k := a.keeper()
	a.ensure(k, 1)
	a.Deny(func(ask ec2test.Ask) string { return "because no policy allows it" })
	a.ensure(k, 1)
	err := k.Ensure(t.Context(), a.numbered(2))
	if refusal.Of(err).Class != refusal.Rights || !strings.Contains(err.Error(), *a.numbered(2).LaunchTemplateName) {
		t.Errorf("%v, want a refusal for rights that names the template", err)
	}
	a.Deny(nil)
	a.ensure(k, 2)
	if a.left() != "1 2 +0" {
		t.Error(a.left())
	}
}

// The template row of the table of codes: a template that is gone is made again.
func TestForgottenTemplatesAreMadeAgain(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	k := a.keeper()
	a.ensure(k, 1)
	name := a.numbered(1).LaunchTemplateName
	if _, err := a.client.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{
		LaunchTemplateName: name,
	}); err != nil {
		t.Fatal(err)
	}
	a.ensure(k, 1)
	if a.left() != " +0" {
		t.Errorf("%s: nobody has told the keeper", a.left())
	}
	k.Forget("karpenter.k8s.aws/unheard-of")
	k.Forget(*name)
	a.ensure(k, 1)
	if a.left() != "1 +0" {
		t.Error(a.left())
	}
}

// gate holds calls back until it is opened.
type gate struct {
	*ec2.Client
	began, open chan struct{}
}

func newGate(client *ec2.Client) gate {
	return gate{client, make(chan struct{}, 100), make(chan struct{})}
}

func (g gate) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, o ...func(*ec2.Options)) (
	*ec2.CreateLaunchTemplateOutput, error) {
	g.began <- struct{}{}
	<-g.open
	return g.Client.CreateLaunchTemplate(ctx, in, o...)
}

// E-30: a caller that gives up is answered at once, and changes nothing for the others.
func TestGivingUpIsNoMatterToOthers(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	g := newGate(a.client)
	k := template.NewKeeper(t.Context(), g, a.clock, "c1")
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- k.Ensure(ctx, a.numbered(1)) }()
	<-g.began
	other := make(chan error)
	go func() { other <- k.Ensure(t.Context(), a.numbered(1)) }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	close(g.open)
	if err := <-other; err != nil || a.left() != "1 +0" {
		t.Errorf("%v, templates %s", err, a.left())
	}
	if err := k.Ensure(ctx, a.numbered(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the end of its context", err)
	}
	if n := a.Counts()["ec2:CreateLaunchTemplate"]; n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

// E-56: at the account's maximum of templates, old ones are deleted, and the call is tried again once.
func TestAFullAccountMakesRoom(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{MaxTemplates: 3})
	k := a.keeper()
	a.ensure(k, 1, 2)
	a.clock.Advance(6 * time.Minute)
	a.ensure(k, 3)
	err := k.Ensure(t.Context(), a.numbered(4))
	if refusal.Of(err).Code != "MaxTemplateLimitExceeded" || a.left() != "1 2 3 +0" {
		t.Errorf("%v, templates %s: those were used less than 10 min ago", err, a.left())
	}
	if n := a.Counts()["ec2:CreateLaunchTemplate"]; n != 3+2 {
		t.Errorf("%d calls, want two for the last", n)
	}
	a.clock.Advance(4 * time.Minute)
	a.ensure(k, 2)
	a.ensure(k, 4)
	if a.left() != "2 3 4 +0" {
		t.Errorf("%s, want that the first is gone", a.left())
	}
}

// E-56: several templates that need room share a collection. Each waits for a deletion of its own, none for the end.
func TestSeveralMakeRoomTogether(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{MaxTemplates: 6})
	k := a.keeper()
	a.ensure(k, 0, 1, 2, 3, 4, 5)
	a.clock.Advance(10 * time.Minute)
	a.ensure(k, 6) // the clock stands still, so one was deleted and the next waits
	if n := len(a.LaunchTemplates()); n != 6 {
		t.Errorf("%d templates, want 6", n)
	}
	a.moving(time.Second, func() {
		var group sync.WaitGroup
		for _, i := range []int{7, 8} {
			group.Go(func() {
				if err := k.Ensure(t.Context(), a.numbered(i)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for len(a.LaunchTemplates()) > 3 {
			runtime.Gosched()
		}
	})
	if a.left() != "6 7 8 +0" || a.Counts()["ec2:DescribeLaunchTemplates"] != 1 {
		t.Errorf("%s, %v, want one listing", a.left(), a.Counts())
	}
}

var _ template.API = (*ec2.Client)(nil)

// strange creates a template that is not ours, or not this cluster's.
func (a *account) strange(name, cluster string) {
	a.t.Helper()
	_, err := a.others.CreateLaunchTemplate(a.t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: aws.String("ami-1"),
		},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate,
			Tags: tag.List(map[string]string{tag.ClusterName: cluster, tag.Owner(cluster): "owned", tag.Pool: "p"})}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
}
