package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	startWithin = 5 * time.Minute
	within      = 6 * time.Minute
	podCPU      = .8 // the request of a pod of web
)

// pool has nodes of one kind only, so both sides launch the same, and a budget of one node, so they take the same
// steps.
const pool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: "100"}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: Never, budgets: [{nodes: "1"}]}
  template:
    metadata: {labels: {example.com/round: one}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [s-2x-amd64-linux]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [test-zone-a]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`

// web has two pods for each node.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: 800m, memory: 1Gi}}}]
`

// huge fits nowhere.
const huge = `
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: default}
spec:
  containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: "1000"}}}]
`

// side is a cluster in which one controller goes through the scenario.
type side struct {
	*rig.Rig
	t          *testing.T
	controller *rig.Controller
	run        Run
	mu         sync.Mutex // of events
}

// begin starts a cluster and a controller, which ends with the test.
func begin(t *testing.T, program func(rig.Options) rig.Program, install func(context.Context, *rig.Rig) error) *side {
	t.Helper()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log, options.WithoutJoiner, options.WithoutManifests = io.Discard, true, true
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	r, err := rig.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{Rig: r, t: t, run: Run{Events: map[string]int{}, Columns: map[string]string{}}}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("stopping the rig: %v", err)
		}
	})
	s.must(install(ctx, r))
	s.listen()
	s.controller, err = r.Run(ctx, program(options))
	s.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(s.controller.Log())
			lines := strings.Split(string(log), "\n")
			t.Logf("the end of the log:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
		s.must(s.controller.Kill()) // Karpenter does not handle SIGTERM
	})
	return s
}

func (s *side) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// listen counts the events that a controller of nodes sends from now on.
func (s *side) listen() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	events, err := s.Client.Watch(ctx, &corev1.EventList{})
	s.must(err)
	var running sync.WaitGroup
	running.Go(func() {
		for event := range events.ResultChan() {
			e, is := event.Object.(*corev1.Event)
			if !is || e.Source.Component != "karpenter" && e.ReportingController != "karpenter" {
				continue
			}
			s.mu.Lock()
			s.run.Events[e.Reason+" "+e.Type+" "+e.InvolvedObject.Kind]++
			s.mu.Unlock()
		}
	})
	s.t.Cleanup(func() { cancel(); events.Stop(); running.Wait() })
}

// scenario plays what both sides go through.
func (s *side) scenario() {
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"pods come, and nodes for them", func() { s.apply(pool + "---" + web); s.stands("one", 3, 6) }},
		{"a pod fits nowhere", func() { s.apply(huge); s.told("FailedScheduling Warning Pod") }},
		{"a scrape and the tables, while nodes stand", s.look},
		{"nodes drift", func() {
			s.patch(`{"spec":{"template":{"metadata":{"labels":{"example.com/round":"two"}}}}}`)
			s.stands("two", 3, 6)
		}},
		{"pods go, and nodes after them", func() {
			s.kubectl("delete", "pod", "huge", "--force")
			s.keepApart()
			s.kubectl("scale", "deployment", "web", "--replicas=2")
			s.stands("two", 3, 2)
			s.patch(`{"spec":{"disruption":{"consolidateAfter":"0s"}}}`)
			s.stands("two", 1, 2)
		}},
		{"somebody deletes a node", func() {
			before := s.claims()[0].Name
			s.kubectl("delete", "nodes", "-l", "karpenter.sh/nodepool", "--wait=false")
			s.eventually("the node's claim is gone", func(context.Context) (bool, string, error) {
				for _, claim := range s.claims() {
					if claim.Name == before {
						return false, before + " is there", nil
					}
				}
				return true, "", nil
			})
			s.stands("two", 1, 2)
		}},
		{"all pods go", func() { s.kubectl("delete", "deployment", "web"); s.stands("two", 0, 0) }},
		{"a scrape at the end", s.end},
	} {
		began := time.Now()
		step.do()
		s.t.Logf("%s: %.0f s", step.what, time.Since(began).Seconds())
	}
}

func (s *side) apply(manifests string) { s.t.Helper(); s.must(s.Apply(s.t.Context(), manifests)) }

func (s *side) kubectl(args ...string) string {
	s.t.Helper()
	out, err := s.Kubectl(s.t.Context(), "", args...)
	s.must(err)
	return out
}

func (s *side) patch(patch string) {
	s.t.Helper()
	s.kubectl("patch", "nodepool", "default", "--type=merge", "-p", patch)
}

func (s *side) eventually(what string, look func(context.Context) (bool, string, error)) {
	s.t.Helper()
	s.must(s.Eventually(s.t.Context(), within, what, look))
}

func (s *side) claims() []karpenterv1.NodeClaim {
	s.t.Helper()
	var claims karpenterv1.NodeClaimList
	s.must(s.Client.List(s.t.Context(), &claims))
	return claims.Items
}

// keepApart makes the ReplicaSet keep two pods on two nodes when it drops the others. Then one node is empty, and one
// is too many.
func (s *side) keepApart() {
	s.t.Helper()
	var all corev1.PodList
	s.must(s.Client.List(s.t.Context(), &all, client.MatchingLabels{"app": "web"}))
	on := map[string]bool{}
	for _, pod := range all.Items {
		if len(on) < 2 && !on[pod.Spec.NodeName] {
			on[pod.Spec.NodeName] = true
			s.kubectl("annotate", "pod", pod.Name, "controller.kubernetes.io/pod-deletion-cost=100")
		}
	}
}

// stands waits until the only claims are nodes claims of the round, each with an initialized node, and the only pods
// of web are pods running ones.
func (s *side) stands(round string, nodes, pods int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d nodes of round %s and %d pods", nodes, round, pods),
		func(ctx context.Context) (bool, string, error) {
			claims, ready := s.claims(), 0
			for _, claim := range claims {
				for _, c := range claim.Status.Conditions {
					if c.Type == karpenterv1.ConditionTypeInitialized && c.Status == "True" &&
						claim.DeletionTimestamp == nil && claim.Labels["example.com/round"] == round {
						ready++
					}
				}
			}
			var all corev1.PodList
			var standing corev1.NodeList
			err := errors.Join(s.Client.List(ctx, &all, client.MatchingLabels{"app": "web"}),
				s.Client.List(ctx, &standing))
			running := 0
			for _, pod := range all.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					running++
				}
			}
			saw := fmt.Sprintf("%d claims, %d of them as wanted, %d nodes, %d of %d pods run", len(claims), ready,
				len(standing.Items), running, len(all.Items))
			return ready == nodes && len(claims) == nodes && len(standing.Items) == nodes && running == pods &&
				len(all.Items) == pods, saw, err
		})
}

// told waits until an event was sent.
func (s *side) told(event string) {
	s.t.Helper()
	s.eventually("the event "+event, func(context.Context) (bool, string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.run.Events[event] > 0, fmt.Sprint(s.run.Events), nil
	})
}

// scrape waits for a scrape with the cluster's true size: Karpenter's gauges are some seconds late.
func (s *side) scrape(nodes, waiting float64) (families map[string]Family) {
	s.t.Helper()
	want := map[string]float64{"karpenter_cluster_state_node_count": nodes,
		"karpenter_scheduler_unschedulable_pods_count": waiting}
	s.eventually("a scrape with all that stands", func(ctx context.Context) (bool, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			fmt.Sprintf("http://127.0.0.1:%d/metrics", s.controller.MetricsPort), nil)
		if err != nil {
			return false, "", err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, "", err
		}
		defer func() { _ = answer.Body.Close() }()
		if families, err = ReadMetrics(answer.Body); err != nil {
			return false, "", err
		}
		done, saw := true, ""
		for name, value := range want {
			has := 0.0
			for _, series := range families[name].Series {
				has += series.Value
			}
			done = done && has == value
			saw += fmt.Sprintf("%s %g of %g; ", name, has, value)
		}
		pods, allocatable := len(families["karpenter_pods_state"].Series),
			len(families["karpenter_nodes_allocatable"].Series)
		done = done && (nodes == 0) == (allocatable == 0) && pods >= int(2*nodes)
		asked, used := cpu(families["karpenter_nodes_total_pod_requests"]),
			cpu(families["karpenter_cluster_utilization_percent"])
		if has := cpu(families["karpenter_nodes_allocatable"]); nodes > 0 {
			done = done && math.Abs(asked-podCPU*2*nodes) < .01 && math.Abs(used-100*asked/has) < .1
		}
		return done, saw + fmt.Sprintf("%d pods, %d amounts of nodes, %g CPUs asked for, %g %% used", pods,
			allocatable, asked, used), nil
	})
	return families
}

// cpu returns the sum of a family's series about CPUs.
func cpu(f Family) (sum float64) {
	for _, series := range f.Series {
		if series.Labels["resource_type"] == "cpu" {
			sum += series.Value
		}
	}
	return sum
}

func (s *side) look() {
	s.t.Helper()
	s.run.Rest = s.scrape(3, 1)
	for _, what := range []string{"nodepools", "nodeclaims"} {
		for _, width := range [][]string{nil, {"-o", "wide"}} {
			args := append([]string{"get", what}, width...)
			s.run.Columns["kubectl "+strings.Join(args, " ")] = Heading(s.kubectl(args...))
		}
	}
}

func (s *side) end() {
	s.t.Helper()
	s.run.End = s.scrape(0, 0)
	log, err := os.ReadFile(s.controller.Log())
	s.must(err)
	s.run.Messages, err = ReadMessages(bytes.NewReader(log))
	s.must(err)
}

// karpenter goes through the scenario with Karpenter, joiner with Joiner.
func karpenter(t *testing.T) *Run {
	t.Helper()
	path := os.Getenv(peer.BinaryEnv)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v: run `make bin/karpenter` and set it to the absolute path of that file", peer.BinaryEnv, err)
	}
	return gone(t, "karpenter", func(rig.Options) rig.Program { return peer.Program(path) }, peer.Install)
}

func joiner(t *testing.T) *Run {
	t.Helper()
	return gone(t, "joiner", func(o rig.Options) rig.Program { return rig.JoinerProgram(o.Joiner) },
		func(ctx context.Context, r *rig.Rig) error { return r.Install(ctx) })
}

// gone runs the scenario with a controller. With -keep the output is kept in a file, and read from there if that
// exists already: for work on the explanations.
func gone(t *testing.T, name string, program func(rig.Options) rig.Program,
	install func(context.Context, *rig.Rig) error) *Run {
	t.Helper()
	file := filepath.Join(*keep, name+".json")
	if *keep != "" {
		if content, err := os.ReadFile(file); err == nil {
			var run Run
			if err := json.Unmarshal(content, &run); err != nil {
				t.Fatal(err)
			}
			return &run
		}
	}
	var run *Run
	t.Run(name, func(t *testing.T) {
		s := begin(t, program, install)
		s.scenario()
		s.mu.Lock()
		defer s.mu.Unlock()
		run = &s.run
		if *keep != "" {
			content, err := json.Marshal(run)
			s.must(errors.Join(err, os.MkdirAll(*keep, 0o755), os.WriteFile(file, content, 0o600)))
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return run
}
