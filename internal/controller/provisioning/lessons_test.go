package provisioning_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// allocatable returns the allocatable resources of the cheapest type of a launch.
func (s *scene) allocatable(l plan.Launch) resources.Vector {
	if l.Cheapest.Type == "larger" {
		return resources.Vector{4000, 0, 0, 10}
	}
	return resources.Vector{2000, 0, 0, 10}
}

// overfilled returns a cluster with one pod of 1.5 cores and machines of 2 and 4. Planning believes that a daemon runs
// on no new node, but it takes a core of each: a label that it selects comes after the node has joined.
func overfilled(t *testing.T) *scene {
	s := newScene(t, 1)
	s.larger = true
	s.daemons = []cluster.Daemon{{Name: "kube-system/agent", Shape: &cluster.Shape{
		Namespace: "kube-system", Requests: resources.Vector{1000, 0, 0, 1},
		Alternatives: []cluster.Alternative{never()},
	}}}
	s.learn = func(daemon, pool string, requests resources.Vector) {
		d := s.daemons[0]
		if d.Learnt = nil; requests != nil {
			d.Learnt = []cluster.Seen{{Pool: pool, Requests: requests}}
		}
		s.daemons = []cluster.Daemon{d}
		fresh := *s.picture.snapshot
		fresh.Daemons, fresh.Version = s.daemons, fresh.Version+1
		s.version, s.picture.snapshot = fresh.Version, cluster.New(fresh)
	}
	return s
}

// fill has the claims join, each with a pod of the daemon.
func (s *scene) fill(requests resources.Vector) {
	s.change(func(n *cluster.Node) {
		if n.Name == "" {
			n.Name, n.Launched, n.Registered, n.Initialized = "node-"+n.Claim, true, true, true
			n.RegisteredAt = s.clock.Now().Unix()
			n.Pods = []*cluster.Pod{{UID: "agent-" + n.Claim, Daemon: "kube-system/agent", Fixed: true, Node: n.Name,
				Shape: &cluster.Shape{Namespace: "kube-system", Requests: requests}}}
			n.Used = requests
		}
	})
}

// launches fails unless a round plans so many claims; none joins.
func (s *scene) launches(what string, want int) {
	s.t.Helper()
	if got := s.round(); got != want {
		s.t.Fatalf("%s: %d launches, want %d; held back: %q", what, got, want, s.brake.Message("default"))
	}
}

// K-34: after a daemon unknown to the plan has filled two nodes, the third one has room for both.
func TestK34_WhatFillsTwoNodesIsLearnt(t *testing.T) {
	t.Parallel()
	s := overfilled(t)
	core := resources.Vector{1000, 0, 0, 1}
	s.launches("a node for the pod", 1)
	s.launches("it is on its way", 0)
	s.fill(core)
	s.launches("the daemon took the room: once may be chance", 1)
	s.launches("it is on its way", 0)
	s.fill(core)
	s.launches("the daemon took the room again", 1)
	if last := s.nodes[2]; last.Allocatable.At(0) != 4000 {
		t.Errorf("the third node has %v; want one with room for both", last.Allocatable)
	}
	want :=
		"web-0 FailedScheduling: DaemonSet kube-system/agent takes cpu=1 on new nodes of pool default, where its template does " +
			"not select them: two nodes for this pod were filled by it; the next one is planned with that"
	if said := strings.Join(s.tape.Said(), "\n"); !strings.Contains(said, want) {
		t.Errorf("said\n%s\nwant %s", said, want)
	}
	if said := s.brake.Message("default"); said != "" {
		t.Errorf("the pool still says %s", said)
	}
	s.launches("the third is on its way, and has room for both", 0)
	s.fill(core)
	s.launches("the pod is expected there", 0)
}

// K-34: for a daemon that requests more than its template, the report says how much more.
func TestK34_HowMuchMoreThanItsTemplate(t *testing.T) {
	t.Parallel()
	s := overfilled(t)
	s.daemons[0].Shape = &cluster.Shape{Namespace: "kube-system", Requests: resources.Vector{250, 0, 0, 1}}
	for range 2 {
		s.launches("a node for the pod", 1)
		s.launches("it is on its way", 0)
		s.fill(resources.Vector{1000, 0, 0, 1})
	}
	s.launches("the third one, at once", 1)
	want := "DaemonSet kube-system/agent takes cpu=750m more than its template on new nodes of pool default"
	if said := strings.Join(s.tape.Said(), "\n"); !strings.Contains(said, want) {
		t.Errorf("said\n%s\nwant %s", said, want)
	}
}

// K-34: cases without a lesson are left to the brake.
func TestK34_NoLesson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between time.Duration
		daemon  resources.Vector
		taint   bool
	}{
		"more than ten minutes apart":         {between: 11 * time.Minute, daemon: resources.Vector{1000, 0, 0, 1}},
		"the pod would fit beside the daemon": {daemon: resources.Vector{100, 0, 0, 1}, taint: true},
	} {
		s := overfilled(t)
		s.learn = func(daemon, pool string, requests resources.Vector) {
			t.Errorf("%s: learnt %s %s %v", name, daemon, pool, requests)
		}
		for i := range 2 {
			s.clock.Advance(time.Duration(i) * c.between)
			s.launches(name, 1)
			s.launches(name, 0)
			if s.fill(c.daemon); c.taint {
				s.change(func(n *cluster.Node) {
					n.Taints = []cluster.Taint{{Key: "surprise", Effect: cluster.NoSchedule}}
				})
			}
			if i == 0 {
				continue
			}
			s.clock.Advance(c.between)
		}
		s.launches(name+": the brake holds", 0)
	}
}

// K-34: what was learnt is lowered to what newer nodes show, once a daemon had time to come there.
func TestK34_ALessonIsCorrected(t *testing.T) {
	t.Parallel()
	s := overfilled(t)
	var learnt []resources.Vector
	learn := s.learn
	s.learn = func(daemon, pool string, requests resources.Vector) {
		learnt = append(learnt, requests)
		learn(daemon, pool, requests)
	}
	for range 2 {
		s.launches("a node for the pod", 1)
		s.launches("it is on its way", 0)
		s.fill(resources.Vector{1000, 0, 0, 1})
	}
	s.launches("the third one", 1)
	s.launches("it is on its way", 0)
	s.clock.Advance(time.Minute)
	s.fill(nil)
	s.change(func(n *cluster.Node) {
		if n.Claim == "c3" {
			n.Pods = nil // the daemon does not come
		}
	})
	s.clock.Advance(9 * time.Minute)
	s.round()
	if len(learnt) != 1 {
		t.Fatalf("learnt %v; want one lesson, the daemon may still come", learnt)
	}
	s.clock.Advance(2 * time.Minute)
	s.round()
	if len(learnt) != 2 || learnt[1] != nil {
		t.Errorf("learnt %v; want that it is forgotten", learnt)
	}
}

// never is a selection that no node satisfies.
func never() cluster.Alternative {
	return cluster.Alternative{Labels: requirement.NewSet(requirement.Nothing(cluster.LabelHostname))}
}
