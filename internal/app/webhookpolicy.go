package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

// schedulerEvery is how often Scheduler is read: well within the five seconds in which a change must hold (N7, N10). It is
// read and not watched because a cluster may have no such kind, now or later (N12).
const schedulerEvery = 2 * time.Second

// policySource keeps the policy in force: the configuration, which does not change, and what Scheduler adds.
type policySource struct {
	sources nodescheduling.Sources // without Scheduler
	read    func(context.Context) (*configv1.Scheduler, error)
	metrics webhook.NodeSchedulingMetrics
	now     func() time.Time
	log     logr.Logger

	current atomic.Pointer[nodescheduling.Policy]
	known   atomic.Bool
	seen    string // what was last made a policy of: UID and version
	failing bool
}

// policy is what is in force.
func (s *policySource) policy() *nodescheduling.Policy { return s.current.Load() }

// ready says whether Scheduler was read once: before that, the lists may lack entries.
func (s *policySource) ready() bool { return s.known.Load() }

// Start implements manager.Runnable.
func (s *policySource) Start(ctx context.Context) error {
	ticks := time.NewTicker(schedulerEvery)
	defer ticks.Stop()
	for {
		if err := s.step(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica judges.
func (s *policySource) NeedLeaderElection() bool { return false }

// step reads Scheduler once. While it cannot be read what was read last holds. An error is a configuration that makes no
// policy.
func (s *policySource) step(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, schedulerEvery)
	defer cancel()
	scheduler, err := s.read(bounded)
	if err != nil {
		if !s.failing && ctx.Err() == nil {
			s.log.Error(err, "Scheduler cannot be read; what was read last holds")
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
	s.metrics.Read.Set(float64(s.now().UnixMilli()) / 1000)
	s.known.Store(true)
	return nil
}

// use makes a policy of the configuration and a Scheduler, and puts it into force.
func (s *policySource) use(scheduler *configv1.Scheduler) error {
	sources := s.sources
	sources.Scheduler = scheduler
	policy, ignored, err := nodescheduling.New(sources)
	if err != nil {
		return err
	}
	s.current.Store(policy)
	s.metrics.Show(policy.Effective(), len(ignored), s.now())
	for _, group := range policy.Effective() {
		s.log.Info("policy in force", "group", group.Group, "mode", group.Mode, "entries", group.Authorized)
	}
	for _, part := range ignored {
		s.log.Info("a part of Scheduler has no effect", "field", part.Field, "reason", part.Why)
	}
	return nil
}

// schedulerFrom reads the object; a cluster without it, or without the kind, has none.
func schedulerFrom(reader client.Reader) func(context.Context) (*configv1.Scheduler, error) {
	return func(ctx context.Context) (*configv1.Scheduler, error) {
		scheduler := &configv1.Scheduler{}
		err := reader.Get(ctx, client.ObjectKey{Name: configv1.SchedulerName}, scheduler)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading Scheduler %s: %w", configv1.SchedulerName, err)
		}
		return scheduler, nil
	}
}
