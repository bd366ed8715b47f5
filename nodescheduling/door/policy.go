package door

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// schedulerEvery is how often the live source is read. A change must be in force within five seconds (N7, N10). There
// is no watch, because a cluster may lack the kind, now or later (N12).
const schedulerEvery = 2 * time.Second

// firstEvery is how often reading is tried until it first succeeds: requests wait for that.
const firstEvery = 200 * time.Millisecond

// PolicyConfig is what a [Policy] needs.
type PolicyConfig struct {
	// Sources are the sources of the policy, without the live one.
	Sources evaluator.Sources
	// Read reads the live source, as [LiveReader] does.
	Read    func(context.Context) (Live, error)
	Metrics Metrics
	Log     logr.Logger
	// Namespace returns the UID of a namespace, and whether it exists. If nil, pins are not watched.
	Namespace func(ctx context.Context, name string) (uid string, exists bool, err error)
	// Nodes are counted for the metric of nodes. If nil, there is none.
	Nodes *Nodes
}

// Policy keeps the policy in force: the configuration, which does not change, and what the live source adds. The live
// source is Scheduler, or Joiner's own kind if Scheduler has no field for it.
type Policy struct {
	config PolicyConfig
	strict *evaluator.Policy // the configuration with all groups enabled

	current atomic.Pointer[evaluator.Policy]
	known   atomic.Bool
	live    evaluator.Source // as logged last
	seen    string           // the content of the current policy: source, UIDs and versions
	told    map[pinTold]bool
	failing bool
}

// NewPolicy puts the configuration alone into force, until the live source is read. It returns an error if the
// configuration is invalid.
func NewPolicy(config PolicyConfig) (*Policy, error) {
	s := &Policy{config: config}
	var err error
	if s.strict, err = strict(config.Sources); err != nil {
		return nil, err
	}
	config.Metrics.ShowLive("")
	return s, s.use(Live{})
}

// strict returns a policy of the configuration alone, with every group in mode Enable. It is used while the content of
// the live source is unknown.
func strict(sources evaluator.Sources) (*evaluator.Policy, error) {
	sources = Live{}.Add(sources)
	if sources.Config != nil {
		sources.Config = sources.Config.DeepCopy()
		for i := range sources.Config.Groups {
			sources.Config.Groups[i].Mode = configv1.Enable
		}
	}
	policy, _, err := evaluator.New(sources)
	return policy, err
}

// Judge returns the verdict on a request. Until the live source was read once, Judge treats every group as enabled. If
// the request concerns a group, it waits for the nodes and the live source, and judges again once that is known. So a
// start opens no gap. cluster.Nodes must not report Ready before [Policy.Known].
func (s *Policy) Judge(request *evaluator.Request, cluster evaluator.Cluster) evaluator.Verdict {
	if !s.Known() {
		verdict := s.strict.Evaluate(request, cluster)
		if len(verdict.Findings) == 0 || !s.Known() {
			return verdict
		}
	}
	return s.InForce().Evaluate(request, cluster)
}

// MayAutomate reports whether Automatic may return an annotation for any request. Before the live source is known, it
// answers as if all groups were enabled.
func (s *Policy) MayAutomate() bool {
	if !s.Known() {
		return s.strict.Automates()
	}
	return s.InForce().Automates()
}

// Automatic returns the value of the override annotation for a pod that is about to be created, "" for none.
// Until the live source was read once, it waits as Judge does. If that is in vain, it returns "": the pod is not
// judged by the real policy either.
func (s *Policy) Automatic(request *evaluator.Request, cluster evaluator.Cluster) string {
	if !s.Known() {
		s.strict.Automatic(request, cluster)
		if !s.Known() {
			return ""
		}
	}
	return s.InForce().Automatic(request, cluster)
}

// InForce returns the policy in force, nil if there is none.
func (s *Policy) InForce() *evaluator.Policy { return s.current.Load() }

// Known reports whether the live source was read once. Before that, the lists may lack entries.
func (s *Policy) Known() bool { return s.known.Load() }

// Start reads the live source again and again until ctx ends. It implements manager.Runnable.
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

// step reads the live source once. While it cannot be read, what was read last holds. At a start, malformed content
// counts as read, with the strictest meaning possible: otherwise every request that aims at a group would wait until
// somebody repairs it. step returns an error if the configuration is invalid.
func (s *Policy) step(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, schedulerEvery)
	defer cancel()
	defer s.lookAtPins(bounded)
	defer s.lookAtNodes()
	live, err := s.config.Read(bounded)
	if err != nil {
		s.report(ctx, err)
		if !s.Known() && errors.Is(err, errMalformed) {
			s.enforce(s.strict, 1)
			s.known.Store(true)
		}
		return nil
	}
	s.failing = false
	if s.live != live.Source {
		s.config.Log.Info("live source", "source", live.Source, "before", s.live)
		s.config.Metrics.ShowLive(live.Source)
		s.live = live.Source
	}
	if seen := live.seen(); s.seen != seen {
		if err := s.use(live); err != nil {
			return err
		}
		s.seen = seen
	}
	s.config.Metrics.Read.Set(float64(time.Now().UnixMilli()) / 1000)
	s.known.Store(true)
	return nil
}

// report logs that the live source could not be read, once for each outage.
func (s *Policy) report(ctx context.Context, err error) {
	if !s.failing && ctx.Err() == nil {
		s.config.Log.Error(err,
			"the live source cannot be read; what was read last holds, "+
				"and after a start the configuration alone with all groups enabled")
	}
	s.failing = true
}

// lookAtNodes counts the nodes of each group.
func (s *Policy) lookAtNodes() {
	if s.config.Nodes == nil {
		return
	}
	for _, group := range s.InForce().Effective() {
		tainted, bare := 0, 0
		for node := range s.config.Nodes.members(group.Group) {
			if evaluator.Tainted(node) {
				tainted++
			} else {
				bare++
			}
		}
		s.config.Metrics.ShowNodes(group.Group, tainted, bare)
	}
}

// pinTold is a state of an entry that was logged.
type pinTold struct {
	group, entry string
	state        evaluator.PinState
}

// lookAtPins shows which entries mean another namespace than intended, or may come to. It logs each of them
// once. If a namespace cannot be read, it changes nothing.
func (s *Policy) lookAtPins(ctx context.Context) {
	if s.config.Namespace == nil {
		return
	}
	policy := s.InForce()
	pins, err := policy.Pins(func(name string) (string, bool, error) { return s.config.Namespace(ctx, name) })
	if err != nil {
		return
	}
	s.config.Metrics.ShowPins(policy.Effective(), pins)
	told := map[pinTold]bool{}
	for _, pin := range pins {
		key := pinTold{pin.Group, pin.Text, pin.State}
		if pin.Fine() || told[key] {
			continue
		}
		told[key] = true
		if !s.told[key] {
			s.config.Log.Info(
				"an entry does not say which namespace it means: let it end in @ and the UID of the namespace, or take it away",
				"group", pin.Group, "entry", pin.Text, "source", pin.Source, "state", pin.State, "uid", pin.Now)
		}
	}
	s.told = told
}

// use makes a policy from the configuration and the live source, and puts it into force.
func (s *Policy) use(live Live) error {
	policy, ignored, err := evaluator.New(live.Add(s.config.Sources))
	if err != nil {
		return err
	}
	s.enforce(policy, len(ignored))
	for _, part := range ignored {
		s.config.Log.Info("a part of the live source has no effect", "object", part.Object, "field", part.Field,
			"reason", part.Why)
	}
	for _, group := range policy.Effective() {
		if group.Group == string(configv1.ControlPlane) && group.Mode == configv1.Enable && live.MastersSchedulable() {
			s.config.Log.Info(
				"mastersSchedulable of Scheduler opens the nodes to all pods, and the mode closes them, which holds: "+
					"set one of them otherwise",
				"group", group.Group, "mode", group.Mode)
		}
	}
	return nil
}

// enforce puts a policy into force and shows it. ignored is the number of parts of the live source without effect.
func (s *Policy) enforce(policy *evaluator.Policy, ignored int) {
	s.current.Store(policy)
	s.config.Metrics.Show(policy.Effective(), ignored, time.Now())
	s.config.Metrics.Entries.Show(policy.Entries())
	for _, group := range policy.Effective() {
		s.config.Log.Info("policy in force", "group", group.Group, "mode", group.Mode, "entries", group.Authorized)
	}
}

// errMalformed says that an object has fields of wrong types. Our CRD refuses such objects; another CRD may accept
// them.
var errMalformed = errors.New("its content has wrong types")
