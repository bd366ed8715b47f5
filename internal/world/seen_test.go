package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// nodeOf is an initialized node of a pool and an instance type.
func nodeOf(name, pool, instanceType string, version int) *corev1.Node {
	node := testNode(name, "uid-of-"+name, version, "")
	node.Labels[karpenterv1.NodePoolLabelKey] = pool
	node.Labels[corev1.LabelInstanceTypeStable] = instanceType
	return node
}

// agentOn is the pod of DaemonSet agent on a node; it asks for so much cpu.
func agentOn(node, generation, cpu string, second int64) *corev1.Pod {
	pod := daemonPod("agent-"+node, generation, cpu, second)
	pod.Spec.NodeName = node
	return pod
}

func agentSet(version int, generation string) *appsv1.DaemonSet {
	set := testDaemon("agent", version)
	set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: generation}
	return set
}

// seen prints the milli-CPUs planned on new nodes for the only DaemonSet.
func seen(s *Store) string {
	text := ""
	for _, d := range s.Snapshot().Daemons {
		for _, seen := range d.Seen {
			text += fmt.Sprintf("%s/%s=%d ", seen.Pool, seen.Type, seen.Requests[0])
		}
	}
	return text
}

func tellAll(t *testing.T, s *Store, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := s.Apply(object); err != nil {
			t.Error(err)
		}
	}
}

func TestK33_PodsOfADaemonSetDiffer(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now})
	must := func(what, want string) {
		t.Helper()
		if got := seen(s); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	tellAll(t, s, agentSet(1, "1"), nodeOf("a1", "a", "small", 2), nodeOf("a2", "a", "large", 3),
		nodeOf("b1", "b", "small", 4), agentOn("a1", "1", "1", 10), agentOn("a2", "1", "1", 11))
	must("all ask for the same", "")
	tellAll(t, s, agentOn("b1", "1", "3", 12))
	must("those of another pool ask for more", "/=3000 a/=1000 b/=3000 ")
	small := agentOn("a1", "1", "1", 10)
	small.ResourceVersion, small.Spec.Containers[0].Resources.Requests = "20", quantities("cpu", "500m")
	tellAll(t, s, small)
	must("one was resized in place", "/=3000 a/=1000 a/small=500 b/=3000 ")
	waiting := daemonPod("agent-a3", "1", "2", 30)
	waiting.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn,
						Values: []string{"a2"}}},
			}}},
	}}
	tellAll(t, s, waiting)
	must("one waits for room on its node", "/=3000 a/=2000 a/small=500 b/=3000 ")
	s.Remove(waiting)
	moved := nodeOf("b1", "a", "small", 40)
	tellAll(t, s, moved)
	must("a node is one of another pool", "/=3000 a/=3000 a/large=1000 ")
	s.Remove(agentOn("b1", "1", "3", 12))
	must("the one that asked for most is gone", "/=1000 a/=1000 a/small=500 ")
	tellAll(t, s, agentSet(50, "2"), nodeOf("b2", "b", "small", 51))
	must("what comes is made from another template", "")
	tellAll(t, s, agentOn("b2", "2", "1", 60))
	must("pods of the old template do not count", "")
	s.Remove(small)
	s.Remove(agentOn("b2", "2", "1", 60))
	s.Remove(agentOn("a2", "1", "1", 11))
	if len(s.admission.sizes) > 0 {
		t.Errorf("no pod is there, and of some it is known what they ask for: %v", s.admission.sizes)
	}
}

func TestK33_TheLastPodsCount(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now})
	tellAll(t, s, agentSet(1, "1"))
	for i := range lastPods + 2 {
		name, cpu := fmt.Sprint("n", i), "1"
		if i < 2 {
			cpu = fmt.Sprint(9 - i) // 9 and 8 for the first two
		}
		tellAll(t, s, nodeOf(name, "a", "small", 100+i), agentOn(name, "1", cpu, int64(200+i)))
		if want := map[int]string{2: "/=9000 a/=9000 ", lastPods: "/=8000 a/=8000 ",
			lastPods + 1: "/=1000 a/=1000 "}[i]; want != "" {
			if got := seen(s); got != want {
				t.Errorf("after %d pods: got %q, want %q", i+1, got, want)
			}
		}
	}
}

func TestK33_TheOrderOfEventsDoesNotMatter(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for i := range 12 {
		name := fmt.Sprint("n", i)
		objects = append(objects, nodeOf(name, fmt.Sprint("p", i%2), fmt.Sprint("t", i%3), i+1),
			agentOn(name, "1", fmt.Sprint(1+i%4), int64(100+i/2)))
	}
	objects = append(objects, agentSet(1, "1"))
	want, chance := "", rand.New(rand.NewPCG(1, 2))
	for range 20 {
		s := New(Config{Now: newClock().Now})
		for i, at := range chance.Perm(len(objects)) {
			if tellAll(t, s, objects[at]); i%5 == 0 {
				s.Snapshot()
			}
		}
		got := seen(s)
		if want == "" {
			want = got
		}
		if got != want || got == "" {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// K-34: learned requests stay in the picture until the template changes; other changes have no effect.
func TestK34_WhatWasLearntStaysWithItsTemplate(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now})
	learnt := func() string {
		text := ""
		for _, d := range s.Snapshot().Daemons {
			for _, l := range d.Learnt {
				text += fmt.Sprintf("%s=%d ", l.Pool, l.Requests[0])
			}
		}
		return text
	}
	must := func(what, want string) {
		t.Helper()
		if got := learnt(); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	tellAll(t, s, agentSet(1, "1"))
	version := s.Version()
	s.Learn("kube-system/agent", "b", resources.Vector{2000})
	s.Learn("kube-system/agent", "a", resources.Vector{1000})
	s.Learn("kube-system/none", "a", resources.Vector{1000})
	must("two pools", "a=1000 b=2000 ")
	if s.Version() == version {
		t.Error("the picture changed and its version did not")
	}
	s.Learn("kube-system/agent", "b", nil)
	must("one is forgotten", "a=1000 ")
	status := agentSet(2, "1")
	status.Status.NumberReady = 1
	tellAll(t, s, status)
	must("the status changed", "a=1000 ")
	other := agentSet(3, "2")
	other.Spec.Template.Spec.Containers[0].Resources.Requests = quantities("cpu", "1")
	tellAll(t, s, other)
	must("the template changed", "")
}

// K-33: what is kept of pods that differ, event by event, is what a look at all of them shows.
func TestK33_EventByEventIsAFullLook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := New(Config{Now: newClock().Now})
		number := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
		version := 0
		step := func(kind int) {
			version++
			name := fmt.Sprint("n", number("which", 39))
			switch kind {
			case 0:
				_ = s.Apply(agentSet(version, fmt.Sprint(1+number("generation", 1))))
			case 1:
				s.Remove(agentOn(name, "1", "1", int64(version)))
			case 2:
				s.Remove(nodeOf(name, "a", "small", version))
			case 3, 4, 5:
				pool, instanceType := fmt.Sprint("p", number("pool", 1)), fmt.Sprint("t", number("type", 1))
				_ = s.Apply(nodeOf(name, pool, instanceType, version))
			default:
				pod := agentOn(name, fmt.Sprint(1+number("made from", 5)/5), fmt.Sprint(1+number("cpu", 9)/4),
					int64(version))
				pod.CreationTimestamp = metav1.Unix(int64(number("born", 5)), 0)
				if number("again", 1) == 1 {
					pod.UID = types.UID(fmt.Sprint("uid-", version))
				}
				_ = s.Apply(pod)
			}
		}
		_ = s.Apply(agentSet(0, "1"))
		for i := range 120 {
			step(3 + i%4)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			step(number("kind", 9))
			e := s.daemons["kube-system/agent"]
			s.Snapshot()
			if got, want := e.value.Seen, fullySeen(s, e); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// fullySeen is what seenOf returns, found by a look at all pods.
func fullySeen(s *Store, e *daemonEntry) []cluster.Seen {
	var pods []*corev1.Pod
	for _, pod := range s.admission.pods["kube-system/agent"] {
		if ownedBySet(pod, e.object) && translate.OfTemplate(e.object, pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	found, counted, sizes := map[place]resources.Vector{}, map[place]int{}, map[string]bool{}
	for _, pod := range pods {
		want, at := translate.Requests(s.space, pod), []place{{}}
		sizes[sizeOf(want)] = true
		if node := s.nodes[pod.Spec.NodeName]; node != nil {
			at = append(at, place{pool: node.value.Pool}, place{node.value.Pool, node.value.InstanceType})
		}
		for _, at := range at {
			if counted[at]++; counted[at] <= lastPods {
				found[at] = found[at].Max(want)
			}
		}
	}
	var list []cluster.Seen
	for at, want := range found {
		if len(sizes) > 1 && (at.instanceType == "" || !want.Equal(found[place{pool: at.pool}])) {
			list = append(list, cluster.Seen{Pool: at.pool, Type: at.instanceType, Requests: want})
		}
	}
	slices.SortFunc(list, func(a, b cluster.Seen) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Type, b.Type))
	})
	return list
}
