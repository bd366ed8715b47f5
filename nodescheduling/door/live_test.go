package door

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// reading is a reader of a server, and the time of its clock.
type reading struct {
	*doortest.Server
	reader *LiveReader
	at     time.Time
}

func newReading() *reading {
	r := &reading{Server: &doortest.Server{Spec: doortest.WithoutField, Scheduler: doortest.Scheduler("1",
		map[string]any{})}, at: time.Unix(1000, 0)}
	r.reader = NewLiveReader(r.Dynamic(), r.OpenAPI())
	r.reader.now = func() time.Time { return r.at }
	return r
}

// says reads once, a while later, and compares the source, and how many documents were asked for.
func (r *reading) says(t *testing.T, what string, later time.Duration, want evaluator.Source, documents ...string) {
	t.Helper()
	r.at = r.at.Add(later)
	live, err := r.reader.Read(t.Context())
	got, expected := live.Source, live.Source == want
	if err != nil { // its text may have the name of a source in it
		got = evaluator.Source(err.Error())
		expected = strings.Contains(err.Error(), string(want)) && !slices.Contains(evaluator.Lives(), want)
	}
	asked := r.Asked()
	for i := range asked {
		asked[i] = strings.TrimPrefix(asked[i], "/openapi/v3")
	}
	if !expected || !slices.Equal(asked, documents) {
		t.Errorf("%s: %q, asked for %q; want %q, %q", what, got, asked, want, documents)
	}
}

const document = "/apis/config.openshift.io/v1"

// groupsOf are Scheduler's spec with a group.
func groupsOf(users ...any) map[string]any {
	return map[string]any{"schedulingGroups": []any{map[string]any{"name": "ControlPlane", "mode": "Enable",
		"authorizedUsers": users}}}
}

// the source is Scheduler where the API server keeps its field, else Joiner's own kind, and neither where that
// is not there.
func TestA18_TheSchemaDecidesAboutTheSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*doortest.Server)
		want   evaluator.Source
		use    evaluator.Source // what an administrator is told to write
	}{
		"a field": {func(s *doortest.Server) { s.Spec = doortest.WithField }, evaluator.FromScheduler,
			evaluator.FromScheduler},
		"any field": {func(s *doortest.Server) { s.Spec = doortest.AnyField }, evaluator.FromScheduler,
			evaluator.FromScheduler},
		"a field, no object": {func(s *doortest.Server) { s.Spec, s.Scheduler = doortest.WithField, nil },
			evaluator.FromScheduler, evaluator.FromScheduler},
		"no field": {func(*doortest.Server) {}, evaluator.FromGroups, evaluator.FromGroups},
		"no field, no object": {func(s *doortest.Server) { s.Scheduler = nil }, evaluator.FromGroups,
			evaluator.FromGroups},
		"no kind": {func(s *doortest.Server) { s.NoScheduler = true }, evaluator.FromGroups,
			evaluator.FromGroups},
		"no field, no own": {func(s *doortest.Server) { s.NoGroups = true }, evaluator.NoSource, evaluator.FromGroups},
		"neither kind": {func(s *doortest.Server) { s.NoScheduler, s.NoGroups = true, true }, evaluator.NoSource,
			evaluator.FromScheduler},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReading()
			r.Groups = append(r.Groups, doortest.Group("1", "Enable", "bob"))
			c.change(r.Server)
			live, err := r.reader.Read(t.Context())
			if use := live.Add(evaluator.Sources{}).Live; err != nil || live.Source != c.want || use != c.use ||
				(len(live.Groups) == 1) != (c.want == evaluator.FromGroups) {
				t.Errorf("source %s, to write %s, %d groups, error %v", live.Source, use, len(live.Groups), err)
			}
			if asked := r.Asked(); r.NoScheduler && len(asked) > 0 {
				t.Errorf("without the kind it asked for %v", asked)
			}
		})
	}
}

// the list of schemas is read every half minute, and the document is fetched only if it changed. For ten seconds
// after a change of Scheduler that may come from its CRD, each reading reads the list. A Scheduler with the field
// needs no schema.
func TestA18_TheSchemaIsReadSeldom(t *testing.T) {
	t.Parallel()
	r := newReading()
	own := evaluator.FromGroups
	r.says(t, "at first", 0, own, "", document)
	r.says(t, "settling", 2*time.Second, own, "")
	r.says(t, "still settling", settleWithin-3*time.Second, own, "")
	r.says(t, "settled", settleWithin, own)
	r.says(t, "before half a minute", schemaEvery-settleWithin-3*time.Second, own)
	r.says(t, "after it, whatever chance added", time.Duration(float64(schemaEvery)*(schemaJitter+1)), own, "")
	r.says(t, "and not again", time.Second, own)
	scheduler := r.Scheduler
	r.Scheduler = nil
	r.says(t, "the object went, as it does with its definition", time.Second, own, "")
	r.says(t, "settled then", settleWithin+time.Second, own)
	r.Scheduler = scheduler
	r.says(t, "it came", time.Second, own, "")
	r.says(t, "settled again", settleWithin+time.Second, own)
	r.Spec = doortest.WithField
	r.says(t, "the field came: not seen yet", time.Second, own)
	r.says(t, "seen", schemaEvery*2, evaluator.FromScheduler, "", document)
	r.Scheduler = doortest.Scheduler("2", groupsOf("alice"))
	r.says(t, "Scheduler has it", time.Second, evaluator.FromScheduler)
	r.says(t, "and goes on", time.Hour, evaluator.FromScheduler)
	r.Spec, r.Scheduler = doortest.WithoutField, doortest.Scheduler("2", map[string]any{})
	r.says(t, "the field went", time.Second, own, "", document)
	r.Scheduler = doortest.Scheduler("3", groupsOf())
	r.says(t, "it came, and the schema is behind", time.Second, evaluator.FromScheduler)
}

// at most a fifth is added at random to the time between two readings of the schema.
func TestA18_ChanceAddsLittle(t *testing.T) {
	t.Parallel()
	for range 50 {
		r := newReading()
		r.says(t, "at first", 0, evaluator.FromGroups, "", document)
		r.says(t, "before it", schemaEvery-1, evaluator.FromGroups)
		r.says(t, "after it", schemaEvery/5+1, evaluator.FromGroups, "")
	}
}

// if the schema cannot be read, the source found last stays. Without one, nothing is known, as when Scheduler
// cannot be read. A kind that is served but not published yet does not count as one without the field.
func TestA18_ASchemaThatCannotBeReadChangesNothing(t *testing.T) {
	t.Parallel()
	r := newReading()
	r.Fails = errors.New("no answer")
	r.says(t, "at first", 0, "reading the schema of Scheduler from /openapi/v3: ", "")
	r.Fails, r.Spec = nil, ""
	r.says(t, "not published", 0, "publishes no schema of Scheduler yet", "")
	r.Spec = doortest.WithField
	r.says(t, "read", 0, evaluator.FromScheduler, "", document)
	r.Fails = errors.New("no answer")
	r.says(t, "later", time.Hour, evaluator.FromScheduler, "")
	r.Fails, r.Spec = nil, ""
	r.says(t, "published no more", time.Hour, evaluator.FromScheduler, "")
	r.NoScheduler = true
	r.says(t, "the kind went", time.Second, evaluator.FromGroups)
	r.NoScheduler = false
	r.says(t, "and came, unpublished", time.Second, evaluator.FromGroups, "")
	if _, err := NewLiveReader(newReading().Dynamic(), nil).Read(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "there is no client for it") {
		t.Errorf("without a client: %v", err)
	}
}

// an object of other types than the kind has is an error that says which.
func TestA18_AnObjectThatNobodyUnderstands(t *testing.T) {
	t.Parallel()
	r := newReading()
	r.Groups = append(r.Groups, doortest.Group("1", "Enable"))
	r.Groups[0].Object["spec"] = "none"
	if _, err := r.reader.Read(t.Context()); !errors.Is(err, errMalformed) || !strings.Contains(err.Error(),
		"reading NodeSchedulingGroup controlplane") {
		t.Errorf("error %v", err)
	}
}

// the definition gains the field while the door runs: the source changes once, entries of the other one are no
// longer counted, and the metric shows both.
func TestA18_TheSourceChangesOnce(t *testing.T) {
	t.Parallel()
	r := newReading()
	r.Groups = append(r.Groups, doortest.Group("1", "Inform", "bob"))
	registry, told := prometheus.NewRegistry(), []string{}
	log := funcr.New(func(_, text string) {
		if strings.Contains(text, `"live source"`) {
			told = append(told, text)
		}
	}, funcr.Options{})
	s, err := NewPolicy(PolicyConfig{Sources: protectedSources(), Metrics: NewMetrics(registry), Log: log,
		Read: r.reader.Read})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what, want string) {
		t.Helper()
		var got []string
		for _, entry := range s.InForce().Entries() {
			got = append(got, string(entry.Source)+" "+entry.Text)
		}
		if text := fmt.Sprint(s.InForce().Effective()[0].Mode, got, sources(t, registry)); text != want {
			t.Errorf("%s: %s, want %s", what, text, want)
		}
	}
	expect("nothing read", "Enable[Config admin] map[NodeSchedulingGroup:0 None:0 Scheduler:0]")
	for range 3 {
		if err := s.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("own", "Inform[Config admin NodeSchedulingGroup bob] map[NodeSchedulingGroup:1 None:0 Scheduler:0]")
	}
	r.Spec = doortest.WithField
	for i := range 4 {
		r.at = r.at.Add(schemaEvery * 2)
		if i == 2 {
			r.Scheduler = doortest.Scheduler("2", groupsOf("alice"))
		}
		if err := s.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		more := ""
		if i >= 2 {
			more = " Scheduler alice"
		}
		expect("Scheduler", "Enable[Config admin"+more+"] map[NodeSchedulingGroup:0 None:0 Scheduler:1]")
	}
	if len(told) != 2 || !strings.Contains(told[1], `"source"="Scheduler" "before"="NodeSchedulingGroup"`) {
		t.Errorf("the log has %q, want the first source and the change", told)
	}
}

// sources reads the gauge.
func sources(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "node_scheduling_policy_live_source" {
				found[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
			}
		}
	}
	return found
}

// A-18, N70: the mode cannot become Enable while Scheduler opens the nodes to all pods; what has it already can be
// changed.
func TestA18_EnableIsRefusedWhileMastersAreSchedulable(t *testing.T) {
	t.Parallel()
	server := &doortest.Server{}
	client := server.Dynamic()
	writes := NewGroupWrites(client)
	enable, inform := doortest.Group("1", string(configv1.Enable)).Object, doortest.Group("1",
		string(configv1.Inform)).Object
	open, closed := doortest.Scheduler("1", map[string]any{"mastersSchedulable": true}), doortest.Scheduler("1",
		map[string]any{"mastersSchedulable": false})
	const refusal = `NodeSchedulingPolicy [ControlPlane/MastersSchedulable]: spec.mode of the NodeSchedulingGroup ` +
		`"controlplane" cannot be Enable: ` +
		`spec.mastersSchedulable of the Scheduler "cluster" (config.openshift.io/v1) is true, ` +
		`which opens the control plane nodes to all pods. ` +
		`Set it to false first, or the mode to Disable or Inform.`
	for name, c := range map[string]struct {
		change      func()
		object, old map[string]any
		want        string
	}{
		"created":        {func() { server.Scheduler = open }, enable, nil, refusal},
		"switched":       {func() { server.Scheduler = open }, enable, inform, refusal},
		"it has it":      {func() { server.Scheduler = open }, enable, enable, ""},
		"another mode":   {func() { server.Scheduler = open }, inform, enable, ""},
		"created so":     {func() { server.Scheduler = open }, inform, nil, ""},
		"no object":      {func() { server.Scheduler = open }, nil, enable, ""},
		"masters closed": {func() { server.Scheduler = closed }, enable, nil, ""},
		"no Scheduler":   {func() { server.Scheduler = nil }, enable, nil, ""},
		"no such kind":   {func() { server.NoScheduler = true }, enable, nil, ""},
		"it has not": {func() {
			server.Scheduler, server.NoScheduler = doortest.Scheduler("1", map[string]any{}),
				false
		}, enable, nil, ""},
	} {
		server.NoScheduler = false
		c.change()
		if got := writes.Refusal(t.Context(), c.object, c.old); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	client.PrependReactor("get", "schedulers", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true,
			nil, errors.New("no answer")
	})
	if got := writes.Refusal(t.Context(), enable, nil); !strings.Contains(got,
		`could not be found out ("no answer"). Try again.`) {
		t.Errorf("without an answer: %q", got)
	}
	for _, c := range []struct {
		group, resource, subresource string
		want                         bool
	}{{"scheduling.joiner.sh", "nodeschedulinggroups", "", true}, {"scheduling.openshift.io", "nodeschedulinggroups",
		"", false},
		{"scheduling.joiner.sh", "others", "", false},
		{"scheduling.joiner.sh", "nodeschedulinggroups", "status", false}, {"", "pods", "", false}} {
		if got := writes.Concern(c.group, c.resource, c.subresource); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	if (GroupWrites{}).Concern("scheduling.joiner.sh", "nodeschedulinggroups", "") {
		t.Error("without a client it concerns something")
	}
}
