package door

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// following is a policy with what it reads, shows and logs.
type following struct {
	*Policy
	registry *prometheus.Registry
	logged   []string
	live     Live
	failure  error
}

func newFollowing(t *testing.T, sources evaluator.Sources, nodes *Nodes) *following {
	t.Helper()
	f := &following{registry: prometheus.NewRegistry(), live: Live{Source: evaluator.FromScheduler, Served: true}}
	var err error
	f.Policy, err = NewPolicy(PolicyConfig{Sources: sources, Metrics: NewMetrics(f.registry), Nodes: nodes,
		Log:  funcr.New(func(_, text string) { f.logged = append(f.logged, text) }, funcr.Options{}),
		Read: func(context.Context) (Live, error) { return f.live, f.failure }})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// read reads once, and returns how many lines of the log have a text since the last time.
func (f *following) read(ctx context.Context, t *testing.T, text string) (lines int) {
	t.Helper()
	if err := f.step(ctx); err != nil {
		t.Fatal(err)
	}
	for _, line := range f.logged {
		if strings.Contains(line, text) {
			lines++
		}
	}
	f.logged = nil
	return lines
}

func schedulerOf(version string, spec configv1.SchedulerSpec) *configv1.Scheduler {
	return &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: configv1.SchedulerName, ResourceVersion: version},
		Spec: spec}
}

func groupIn(mode configv1.GroupMode, users ...string) configv1.SchedulerSpec {
	return configv1.SchedulerSpec{
		SchedulingGroups: []configv1.SchedulingGroup{{Name: configv1.ControlPlane, Mode: mode,
			AuthorizedUsers: users}}}
}

// N7: an outage of the live source is logged once at its beginning, and not at its end.
func TestN7_AFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	f := newFollowing(t, protectedSources(), nil)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx     context.Context
		failure error
		lines   int
	}{
		{t.Context(), errors.New("a"), 1}, {t.Context(), errors.New("b"), 0}, {t.Context(), nil, 0},
		{t.Context(), errors.New("c"), 1}, {t.Context(), nil, 0}, {ended, errors.New("d"), 0},
	} {
		f.failure = c.failure
		if lines := f.read(c.ctx, t, "the live source cannot be read"); lines != c.lines {
			t.Errorf("%v: %d lines, want %d", c.failure, lines, c.lines)
		}
	}
}

// N70: where Scheduler opens the nodes and the mode closes them, the log says so, once for each change.
func TestN70_ModeAndMastersSchedulable(t *testing.T) {
	t.Parallel()
	sources := protectedSources()
	other := sources.Config.Groups[0]
	other.Name = "Edge"
	sources.Config.Groups = append(sources.Config.Groups, other)
	f := newFollowing(t, sources, nil)
	for i, c := range []struct {
		name  string
		mode  configv1.GroupMode
		open  bool
		lines int
	}{
		{configv1.SchedulerName, configv1.Enable, true, 1}, {configv1.SchedulerName, configv1.Inform, true, 0},
		{configv1.SchedulerName, configv1.Enable, false, 0}, {"another", configv1.Enable, true, 0},
	} {
		f.live.Scheduler = schedulerOf(fmt.Sprint(i), groupIn(c.mode))
		f.live.Scheduler.Name, f.live.Scheduler.Spec.MastersSchedulable = c.name, c.open
		for again := range 2 {
			if lines := f.read(t.Context(), t, "mastersSchedulable of Scheduler opens"); lines != c.lines*(1-again) {
				t.Errorf("%+v, again %d: %d lines", c, again, lines)
			}
		}
	}
}

// N66: what is in force, and what has no effect, is logged when it changes and shown; when it was read is shown each
// time. What does not change makes no new policy.
func TestN66_WhatIsInForceIsShown(t *testing.T) {
	t.Parallel()
	f := newFollowing(t, protectedSources(), nil)
	spec := groupIn(configv1.Inform, "bob")
	spec.SchedulingGroups = append(spec.SchedulingGroups, configv1.SchedulingGroup{Name: "Unknown"})
	f.live.Scheduler = schedulerOf("1", spec)
	if err := f.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(f.logged, "\n")
	for _, want := range []string{`"policy in force" "group"="ControlPlane" "mode"="Inform" "entries"=2`,
		`"a part of the live source has no effect" "object"="Scheduler cluster" "field"="spec.schedulingGroups[1].name"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the log lacks %s:\n%s", want, all)
		}
	}
	if gauge(t, f.registry, "group_mode", "Inform") != 1 || gauge(t, f.registry, "group_mode") != 1 ||
		gauge(t, f.registry, "scheduler_ignored_fields") != 1 {
		t.Error("the mode, or that a field is ignored, is not shown")
	}
	if _, shown := counted(t, f.registry)["Scheduler bob"]; !shown {
		t.Error("the entry of Scheduler is not shown")
	}
	f.config.Metrics.Read.Set(0)
	before := f.InForce()
	f.read(t.Context(), t, "")
	if ago := float64(time.Now().Unix()) - gauge(t, f.registry, "scheduler_read_timestamp_seconds"); ago < -1 ||
		ago > 60 {
		t.Errorf("read %v s ago", ago)
	}
	if f.InForce() != before {
		t.Error("a new policy without a change")
	}
	f.live = Live{Source: evaluator.FromGroups, Groups: nil}
	if f.read(t.Context(), t, ""); f.InForce() == before {
		t.Error("the old policy after a change")
	}
}

// N60: a Scheduler that nobody understands at a start is shown as one part that has no effect.
func TestN60_WhatIsNotUnderstoodIsShown(t *testing.T) {
	t.Parallel()
	f := newFollowing(t, protectedSources(), nil)
	f.failure = fmt.Errorf("reading: %w", errMalformed)
	f.read(t.Context(), t, "")
	if got := gauge(t, f.registry, "scheduler_ignored_fields"); got != 1 || !f.Known() {
		t.Errorf("%v fields are ignored, known %t", got, f.Known())
	}
}

// a NodeSchedulingGroup that changes is seen.
func TestA18_AGroupThatChangesIsSeen(t *testing.T) {
	t.Parallel()
	r := newReading()
	f := newFollowing(t, protectedSources(), nil)
	f.config.Read = r.reader.Read
	for version, want := range map[string]configv1.GroupMode{"1": configv1.Inform, "2": configv1.Disable,
		"3": configv1.Enable} {
		r.Groups = append(r.Groups[:0:0], doortest.Group(version, string(want)))
		f.read(t.Context(), t, "")
		if got := f.InForce().Effective()[0].Mode; got != want {
			t.Errorf("mode %s, want %s", got, want)
		}
	}
}

// the nodes of each group are counted, by whether a taint keeps pods off them.
func TestA13_NodesAreCounted(t *testing.T) {
	t.Parallel()
	var all []*corev1.Node
	for i := range 5 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Labels: map[string]string{"cp": ""}}}
		if i < 2 {
			node.Spec.Taints = []corev1.Taint{{Key: "cp", Effect: corev1.TaintEffectNoSchedule}}
		}
		all = append(all, node)
	}
	nodes, err := FixedNodes(protectedSources().Config,
		append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w"}}))
	if err != nil {
		t.Fatal(err)
	}
	f := newFollowing(t, protectedSources(), nodes)
	f.read(t.Context(), t, "")
	if tainted, bare := gauge(t, f.registry, "nodes", "true"), gauge(t, f.registry, "nodes", "false"); tainted != 2 ||
		bare != 3 {
		t.Errorf("%v with a taint and %v without", tainted, bare)
	}
}

// N2, N4: an invalid configuration is an error, at the start and later. Without a configuration there is no policy.
func TestN2_AConfigurationThatMakesNoPolicy(t *testing.T) {
	t.Parallel()
	config := PolicyConfig{Sources: evaluator.Sources{Config: &v1alpha1.NodeSchedulingPolicyConfig{}},
		Log: logr.Discard(), Metrics: NewMetrics(prometheus.NewRegistry())}
	if p, err := NewPolicy(config); err == nil || p != nil {
		t.Errorf("%v (%v)", p, err)
	}
	mode := protectedSources()
	// which counts for nothing until the live source is known, and is wrong at once
	mode.Config.Groups[0].Mode = "Maybe"
	if _, err := NewPolicy(PolicyConfig{Sources: mode, Log: logr.Discard(),
		Metrics: NewMetrics(prometheus.NewRegistry())}); err == nil || !strings.Contains(err.Error(),
		"groups[0].mode") {
		t.Errorf("a mode that is none: %v", err)
	}
	f := newFollowing(t, protectedSources(), nil)
	f.config.Sources.Config = config.Sources.Config
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := f.Start(bounded); err == nil || !strings.Contains(err.Error(), "groups is missing") || f.Known() {
		t.Errorf("later: %v", err)
	}
	f = newFollowing(t, evaluator.Sources{}, nil)
	if f.MayAutomate() || f.InForce() != nil || f.NeedLeaderElection() {
		t.Errorf("without a configuration: %+v", f.InForce())
	}
}

// N7, N10: the live source is read every 200 ms until it was read once, then every 2 s, each time within 2 s. A busy
// machine makes that later, never sooner.
func TestN7_HowOftenTheLiveSourceIsRead(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var at []time.Time
	var left time.Duration
	const failing = 8
	f := newFollowing(t, protectedSources(), nil)
	f.config.Log = logr.Discard()
	f.config.Read = func(ctx context.Context) (Live, error) {
		deadline, _ := ctx.Deadline()
		at, left = append(at, time.Now()), max(left, time.Until(deadline))
		switch len(at) {
		case failing + 2:
			end()
		case failing + 1:
		default:
			return Live{}, errors.New("not yet")
		}
		return f.live, nil
	}
	if err := f.Start(ctx); err != nil {
		t.Fatal(err)
	}
	var gaps []time.Duration
	for i := range failing {
		gaps = append(gaps, at[i+1].Sub(at[i]))
	}
	if first := slices.Min(gaps); first < 190*time.Millisecond || first > 350*time.Millisecond {
		t.Errorf("at first after %s, want 200 ms", first)
	}
	if then := at[failing+1].Sub(at[failing]); then < 1900*time.Millisecond || then > 3900*time.Millisecond {
		t.Errorf("then after %s, want 2 s", then)
	}
	if left > 2*time.Second || left < 1500*time.Millisecond {
		t.Errorf("within %s, want 2 s", left)
	}
}

// waiting are nodes for which a request waits once; something happens meanwhile.
type waiting struct {
	nodes    []*corev1.Node
	happens  func()
	asked    int
	readyNow bool
}

// Ready implements evaluator.Nodes.
func (w *waiting) Ready() bool {
	w.asked++
	if w.happens != nil {
		w.happens()
	}
	return w.readyNow
}

// Synced implements evaluator.Nodes.
func (w *waiting) Synced() bool { return w.readyNow }

// Get implements evaluator.Nodes.
func (w *waiting) Get(name string) (*corev1.Node, bool) {
	for _, node := range w.nodes {
		if node.Name == name {
			return node, true
		}
	}
	return nil, false
}

// All implements evaluator.Nodes.
func (w *waiting) All() iter.Seq[*corev1.Node] { return slices.Values(w.nodes) }

func creation(user, namespace, node string) *evaluator.Request {
	return &evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: namespace,
		User: evaluator.User{Name: user}, Pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}}
}

func twoNodes() []*corev1.Node {
	return []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "cp1", Labels: map[string]string{"cp": ""}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}}
}

// N60: after the wait, the content of the live source decides, once, about requests that the configuration alone would
// have refused or found authorized. Requests that concern no group are judged once, and so are all requests once the
// source is known.
func TestN60_WhatWasWaitedForDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, user, namespace, node string
		mode                        configv1.GroupMode
		known                       bool
		findings                    []evaluator.Decision
		waits                       int
	}{
		{"it is disabled meanwhile", "alice", "app", "cp1", configv1.Disable, false, nil, 1},
		{"an authorized pair, which waits for nothing", "admin", "ops", "cp1", configv1.Disable, false,
			[]evaluator.Decision{evaluator.Authorized}, 0},
		{"another node", "alice", "app", "w1", configv1.Enable, false, nil, 1},
		{"it is known to be disabled", "alice", "app", "cp1", configv1.Disable, true, nil, 0},
	} {
		sources := protectedSources()
		sources.Config.Groups[0].AuthorizedUsers = append(sources.Config.Groups[0].AuthorizedUsers, "namespace:ops")
		f := newFollowing(t, sources, nil)
		f.live.Scheduler = schedulerOf("1", groupIn(c.mode))
		nodes := &waiting{nodes: twoNodes(), readyNow: true, happens: func() { f.read(t.Context(), t, "") }}
		if c.known {
			f.read(t.Context(), t, "")
		}
		var got []evaluator.Decision
		verdict := f.Judge(creation(c.user, c.namespace, c.node), evaluator.Cluster{Nodes: nodes})
		for _, finding := range verdict.Findings {
			got = append(got, finding.Decision)
		}
		if !verdict.Allowed || !slices.Equal(got, c.findings) || nodes.asked != c.waits {
			t.Errorf("%s: %v, waited %d times; want %v and %d", c.what, got, nodes.asked, c.findings, c.waits)
		}
	}
}

// N60: one finding that the configuration authorizes is looked at again, too, if the source came while another was
// waited for.
func TestN60_AnAuthorizedPairIsJudgedAgain(t *testing.T) {
	t.Parallel()
	f := newFollowing(t, protectedSources(), nil)
	f.live.Scheduler = schedulerOf("1", groupIn(configv1.Disable))
	nodes := &waiting{nodes: twoNodes(), readyNow: true}
	request := creation("admin", "ops", "cp1")
	cluster := evaluator.Cluster{Nodes: nodes, Namespace: func(string) (string, bool, error) {
		f.read(t.Context(), t, "")
		return firstUID, true, nil
	}}
	f.strict = strictOf(t, "admin", "ops/default")
	if verdict := f.Judge(request, cluster); !verdict.Allowed || len(verdict.Findings) > 0 {
		t.Errorf("%+v", verdict)
	}
}

func strictOf(t *testing.T, users ...string) *evaluator.Policy {
	t.Helper()
	sources := protectedSources()
	sources.Config.Groups[0].AuthorizedUsers = users
	policy, err := strict(sources)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// N60: until the live source is known every group counts as enabled, whatever the maker of the policy has of it.
func TestN60_TheConfigurationAloneAtAStart(t *testing.T) {
	t.Parallel()
	sources := protectedSources()
	sources.Scheduler = schedulerOf("1", groupIn(configv1.Disable))
	f := newFollowing(t, sources, nil)
	verdict := f.Judge(creation("alice", "app", "cp1"),
		evaluator.Cluster{Nodes: &waiting{nodes: twoNodes(), readyNow: true}})
	if verdict.Allowed {
		t.Error("it passes")
	}
}

// what is written depends on the live source: before that is known a request waits, and nothing is written if in
// vain.
func TestA42_TheAnnotationWaitsForTheLiveSource(t *testing.T) {
	t.Parallel()
	sources := protectedSources()
	sources.Config.EmergencyOverride = v1alpha1.OverrideAutomatic
	sources.Config.Groups[0].Mode = configv1.Disable // Scheduler may say otherwise
	for _, c := range []struct {
		what      string
		comes     bool
		mode      configv1.GroupMode
		automates bool // once it is known
		want      string
	}{
		{"in vain", false, configv1.Enable, true, ""}, {"it comes", true, configv1.Enable, true, "automatic: admin"},
		{"it comes and disables the group", true, configv1.Disable, false, ""},
	} {
		f := newFollowing(t, sources, nil)
		f.live.Scheduler = schedulerOf("1", groupIn(c.mode))
		if !f.MayAutomate() {
			t.Errorf("%s: nothing is waited for", c.what)
		}
		nodes := &waiting{nodes: twoNodes(), readyNow: true, happens: func() {
			if c.comes {
				f.read(t.Context(), t, "")
			}
		}}
		cluster := evaluator.Cluster{Nodes: nodes}
		if got := f.Automatic(creation("admin", "tmp", "cp1"), cluster); got != c.want || nodes.asked == 0 {
			t.Errorf("%s: %q, waited %d times; want %q", c.what, got, nodes.asked, c.want)
		}
		f.read(t.Context(), t, "")
		nodes.asked = 0
		if f.MayAutomate() != c.automates {
			t.Errorf("%s: it may automate: %t", c.what, !c.automates)
		}
		if got := f.Automatic(creation("admin", "tmp", "cp1"), cluster); (got != "") != c.automates ||
			nodes.asked > 1 {
			t.Errorf("%s, known: %q, waited %d times", c.what, got, nodes.asked)
		}
	}
}
