package whatif_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// waitingPods wait each for something else: a hard limit, a taint, and what the pod itself says.
const waitingPods = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: full}
spec:
  hardLimits: {nodes: 0}
  template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: tainted}
spec:
  template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: [],
    taints: [{key: team, value: red, effect: NoSchedule}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: limited, namespace: default}
spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger, namespace: default}
spec: {nodeSelector: {karpenter.sh/nodepool: tainted}, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: odd, namespace: default}
spec: {containers: [{name: main, resources: {requests: {cpu: "-1"}}}]}`

// moving is a snapshot with another version at each look, as if something had happened elsewhere.
type moving struct{ cluster.Snapshot }

func (m *moving) look() *cluster.Snapshot {
	m.Version++
	picture := m.Snapshot
	return &picture
}

type picture func() *cluster.Snapshot

func (p picture) Snapshot() *cluster.Snapshot { return p() }

// idle carries nothing out; its other methods are not used.
type idle struct{ disruption.Applier }

func (idle) Begin(context.Context) error { return nil }

func (idle) Apply(context.Context, plan.Plan) (apply.Outcome, error) { return apply.Outcome{}, nil }

// told returns the provisioning controller's events and info lines in three rounds on a snapshot without relevant
// changes.
func told(t *testing.T, world *whatif.World) (events, lines []string) {
	t.Helper()
	state, tape, clock := &moving{*world.Snapshot()}, &controllertest.Tape{}, controllertest.NewClock()
	set := metrics.New(prometheus.NewRegistry())
	log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	step := provisioning.New(provisioning.Config{
		Picture: picture(state.look), Applier: idle{}, Brake: provisioning.NewBrake(), InVain: set.Pools.InVain,
		Told: func(string) {}, Window: provisioning.NewWindow(time.Second, time.Second, nil), Events: tape,
		Metrics: set.Plans, Ready: func() bool { return true }, Now: clock.Now, Log: log,
	})
	for range 3 {
		if _, err := step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Hour)
	}
	return tape.Said(), lines
}

// TestU15_OneCauseHasManyFaces: for one snapshot, explain in text and in JSON, simulate, the event on the pod and the
// log line have the same code and sentence, and the event says what to do. Nothing of it changes with time, and the
// log has it once.
func TestU15_OneCauseHasManyFaces(t *testing.T) {
	t.Parallel()
	world, err := pictured(t, documentsOf(t, &datadriven.TestData{Cmd: "faces", Input: waitingPods}))
	if err != nil {
		t.Fatal(err)
	}
	events, lines := told(t, world)
	full, err := world.ExplainPool("full")
	if err != nil {
		t.Fatal(err)
	}
	event := "full LimitReached: " + full.Cause.Event()
	others := slices.DeleteFunc(slices.Clone(events), func(said string) bool { return said == event })
	if len(events) != len(others)+3 || full.Cause.Code != cause.LimitReached {
		t.Errorf("explain says %+v of the pool; said\n%s", full.Cause, strings.Join(events, "\n"))
	}
	if events = others; len(events) != 9 || len(lines) != 3 {
		t.Fatalf("%d events and %d lines of three pods in three rounds:\n%s\n%s", len(events), len(lines),
			strings.Join(events, "\n"), strings.Join(lines, "\n"))
	}
	var simulated strings.Builder
	if err := world.Plan().WriteText(&simulated); err != nil {
		t.Fatal(err)
	}
	for pod, code := range map[string]string{"limited": "HardLimitNodes", "stranger": "TaintNotTolerated",
		"odd": "PodMalformed"} {
		e, err := world.ExplainPod("default", pod, false)
		if err != nil || e.Cause == nil || string(e.Cause.Code) != code {
			t.Fatalf("%s: %v, %+v; want %s", pod, err, e.Cause, code)
		}
		var text, object strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if err := e.WriteJSON(&object); err != nil {
			t.Fatal(err)
		}
		var read struct{ Cause struct{ Code, Text string } }
		if err := json.Unmarshal([]byte(object.String()), &read); err != nil || read.Cause.Code != code ||
			read.Cause.Text != e.Cause.Text {
			t.Errorf("%s: JSON has %+v (%v)", pod, read.Cause, err)
		}
		sentence := code + ": " + e.Cause.Text + ". To do: " + strings.Join(e.Cause.Remedies, "; or ") + "."
		count := 0
		for _, said := range events {
			if strings.HasPrefix(said, pod+" FailedScheduling: "+sentence) {
				count++
			}
		}
		if count != 3 {
			t.Errorf("%s: %d of 3 events begin with %q:\n%s", pod, count, sentence, strings.Join(events, "\n"))
		}
		if whole := text.String(); !strings.HasPrefix(whole, "pod default/"+pod+" waits: "+code+"\n  "+e.Cause.Text+
			"\n") {
			t.Errorf("explain says\n%s", whole)
		}
		if !strings.Contains(simulated.String(), ", "+code+"\n  "+e.Cause.Text+"\n") {
			t.Errorf("simulate says\n%s", simulated.String())
		}
		logged := 0
		for _, line := range lines {
			var l struct{ Cause, Text, First string }
			if err := json.Unmarshal([]byte(line), &l); err == nil && l.First == "default/"+pod &&
				l.Cause == code && l.Text == e.Cause.Text {
				logged++
			}
		}
		if logged != 1 {
			t.Errorf("%s: %d lines of the log have it:\n%s", pod, logged, strings.Join(lines, "\n"))
		}
	}
}
