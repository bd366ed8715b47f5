package door

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
)

// schedulerEvery is how often Scheduler is read: well within the five seconds in which a change must hold (N7, N10). It is
// read and not watched because a cluster may have no such kind, now or later (N12).
const schedulerEvery = 2 * time.Second

// firstEvery is how often it is tried until it was read once: requests wait for that.
const firstEvery = 200 * time.Millisecond

// PolicyConfig is what a [Policy] needs.
type PolicyConfig struct {
	// Sources are those of the policy, without Scheduler.
	Sources nodescheduling.Sources
	// Read reads Scheduler; a cluster that has none has nil and no error.
	Read    func(context.Context) (*configv1.Scheduler, error)
	Metrics Metrics
	Log     logr.Logger
}

// Policy keeps the policy in force: the configuration, which does not change, and what Scheduler adds.
type Policy struct {
	config PolicyConfig

	current atomic.Pointer[nodescheduling.Policy]
	known   atomic.Bool
	seen    string // what was last made a policy of: UID and version
	failing bool
}

// NewPolicy puts the configuration alone into force, until Scheduler is read. An error is a configuration that makes no
// policy.
func NewPolicy(config PolicyConfig) (*Policy, error) {
	s := &Policy{config: config}
	return s, s.use(nil)
}

// InForce is the policy in force, nil where there is none.
func (s *Policy) InForce() *nodescheduling.Policy { return s.current.Load() }

// Known says whether Scheduler was read once: before that, the lists may lack entries.
func (s *Policy) Known() bool { return s.known.Load() }

// Start reads Scheduler again and again until ctx ends. It implements manager.Runnable.
func (s *Policy) Start(ctx context.Context) error {
	for {
		if err := s.step(ctx); err != nil {
			return err
		}
		wait := schedulerEvery
		if !s.Known() {
			wait = firstEvery
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica judges.
func (s *Policy) NeedLeaderElection() bool { return false }

// step reads Scheduler once. While it cannot be read what was read last holds. An error is a configuration that makes no
// policy.
func (s *Policy) step(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, schedulerEvery)
	defer cancel()
	scheduler, err := s.config.Read(bounded)
	if err != nil {
		if !s.failing && ctx.Err() == nil {
			s.config.Log.Error(err, "Scheduler cannot be read; what was read last holds")
		}
		s.failing = true
		return nil
	}
	s.failing = false
	seen := "none"
	if scheduler != nil {
		seen = string(scheduler.UID) + "/" + scheduler.ResourceVersion
	}
	if s.seen != seen {
		if err := s.use(scheduler); err != nil {
			return err
		}
		s.seen = seen
	}
	s.config.Metrics.Read.Set(float64(time.Now().UnixMilli()) / 1000)
	s.known.Store(true)
	return nil
}

// use makes a policy of the configuration and a Scheduler, and puts it into force.
func (s *Policy) use(scheduler *configv1.Scheduler) error {
	sources := s.config.Sources
	sources.Scheduler = scheduler
	policy, ignored, err := nodescheduling.New(sources)
	if err != nil {
		return err
	}
	s.current.Store(policy)
	s.config.Metrics.Show(policy.Effective(), len(ignored), time.Now())
	s.config.Metrics.Entries.Show(policy.Entries())
	for _, group := range policy.Effective() {
		s.config.Log.Info("policy in force", "group", group.Group, "mode", group.Mode, "entries", group.Authorized)
	}
	for _, part := range ignored {
		s.config.Log.Info("a part of Scheduler has no effect", "field", part.Field, "reason", part.Why)
	}
	return nil
}

// SchedulerFrom reads the object; a cluster without it, or without the kind, has none (N12). Fields that nobody knows yet
// are left out (N69).
func SchedulerFrom(client dynamic.Interface) func(context.Context) (*configv1.Scheduler, error) {
	resource := client.Resource(configv1.GroupVersion().WithResource("schedulers"))
	return func(ctx context.Context) (*configv1.Scheduler, error) {
		found, err := resource.Get(ctx, configv1.SchedulerName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		scheduler := &configv1.Scheduler{}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, scheduler)
		}
		if err != nil {
			return nil, fmt.Errorf("reading Scheduler %s: %w", configv1.SchedulerName, err)
		}
		return scheduler, nil
	}
}
