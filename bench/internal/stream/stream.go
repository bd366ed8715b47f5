// Package stream plays a recorded stream of watch events into Joiner's store (B-19): a cluster is created, and a part
// of its pods is replaced. The recording is JSON, one event a line, as an API server sends them.
package stream

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/joiner"
	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// replaced is the inverse share of pods that are replaced once all have come: one in ten.
const replaced = 10

// chunk is how many events are decoded before the store takes them in, so that the two are measured apart.
const chunk = 20_000

// samples is how many snapshots are taken, each after one event.
const samples = 1001

// event is a line of a recording.
type event struct {
	Type   string          `json:"type"` // ADDED, MODIFIED or DELETED
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
}

// Record writes the events that create the scenario's cluster: its NodeClaims and nodes, and each pod as it is made,
// bound, and begins to run. Then one pod in ten goes, and another one comes.
func Record(s scenario.Scenario, to io.Writer) error {
	r := recorder{out: json.NewEncoder(to), version: 10}
	for _, n := range s.Nodes {
		node, claim, err := joiner.ObjectsOf(s, n)
		if err != nil {
			return err
		}
		r.write("ADDED", "NodeClaim", claim)
		r.write("ADDED", "Node", node)
	}
	for _, n := range s.Nodes {
		for _, pod := range n.Pods {
			r.life(pod)
		}
	}
	for i, n := range s.Nodes {
		for j, pod := range n.Pods {
			if (i+j)%replaced == 0 {
				r.write("DELETED", "Pod", pod)
				next := pod.DeepCopy()
				next.UID, next.Name = pod.UID+"-next", pod.Name+"-next"
				r.life(next)
			}
		}
	}
	return r.err
}

type recorder struct {
	out     *json.Encoder
	version int
	err     error
}

func (r *recorder) life(pod *corev1.Pod) {
	made := pod.DeepCopy()
	made.Spec.NodeName, made.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	r.write("ADDED", "Pod", made)
	bound := pod.DeepCopy()
	bound.Status = corev1.PodStatus{Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
	r.write("MODIFIED", "Pod", bound)
	running := bound.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	running.Status.Conditions = append(running.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	r.write("MODIFIED", "Pod", running)
}

func (r *recorder) write(kind, of string, object client.Object) {
	object = object.DeepCopyObject().(client.Object)
	r.version++
	object.SetResourceVersion(strconv.Itoa(r.version))
	raw, err := json.Marshal(object)
	if err == nil {
		err = r.out.Encode(event{kind, of, raw})
	}
	r.err = errors.Join(r.err, err)
}

// Play takes the recording into a new store, and measures. The scenario gives the pool and the catalogue.
func Play(s scenario.Scenario, from io.Reader) (measure.Cost, report.Stream, error) {
	s.Nodes, s.Pending = nil, nil
	store, err := joiner.NewStore(s, joiner.Costs{PriceTolerance: engine.DefaultPriceTolerance})
	if err != nil {
		return measure.Cost{}, report.Stream{}, err
	}
	p := player{store: store, lines: bufio.NewReaderSize(from, 1<<20), kept: map[string]client.Object{}}
	p.empty = heap()
	if err := p.play(); err != nil {
		return p.cost, p.out, err
	}
	p.weigh()
	err = p.snapshots()
	return p.cost, p.out, err
}

type player struct {
	store *world.Store
	lines *bufio.Reader
	held  []byte // a line that was read, and belongs to the next chunk
	// kept are the objects as a cache of client-go has them, by kind and name.
	kept         map[string]client.Object
	some         []*corev1.Pod
	nodes, pods  int
	empty, first uint64 // bytes of the heap: of an empty store, and with the nodes in it
	cost         measure.Cost
	out          report.Stream
}

// play takes in the events, a chunk at a time.
func (p *player) play() error {
	for done := false; !done; {
		var events []event
		var objects []client.Object
		decoding, err := measure.Of(func() (err error) {
			events, objects, done, err = p.decode()
			return err
		})
		if err != nil {
			return err
		}
		taking, err := measure.Of(func() error { return p.takeIn(events, objects) })
		if err != nil {
			return err
		}
		p.out.Events += len(events)
		if n := len(events); n > 0 && events[n-1].Kind != "Pod" { // none is decoded yet: decode ends before the first
			p.first = heap()
		}
		p.out.DecodeCPUSeconds += decoding.CPUSeconds
		p.cost = p.cost.Plus(taking)
	}
	return nil
}

// decode reads a chunk, and ends it where the first pods come.
func (p *player) decode() (events []event, objects []client.Object, done bool, err error) {
	for len(events) < chunk {
		line := p.held
		if p.held = nil; line == nil {
			line, err = p.lines.ReadBytes('\n')
		}
		if errors.Is(err, io.EOF) {
			return events, objects, true, nil
		}
		var e event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return nil, nil, false, fmt.Errorf("reading an event: %w", err)
		}
		if e.Kind == "Pod" && len(events) > 0 && events[len(events)-1].Kind != "Pod" {
			p.held = line
			return events, objects, false, nil
		}
		var object client.Object
		switch e.Kind {
		case "NodeClaim":
			object = &karpenterv1.NodeClaim{}
		case "Node":
			object = &corev1.Node{}
		default:
			object = &corev1.Pod{}
		}
		if err := json.Unmarshal(e.Object, object); err != nil {
			return nil, nil, false, fmt.Errorf("reading a %s: %w", e.Kind, err)
		}
		e.Object = nil
		events, objects = append(events, e), append(objects, object)
	}
	return events, objects, false, nil
}

func (p *player) takeIn(events []event, objects []client.Object) error {
	for i, e := range events {
		key := e.Kind + " " + objects[i].GetName()
		if pod, is := objects[i].(*corev1.Pod); is {
			switch e.Type {
			case "ADDED":
				p.pods++
			case "DELETED":
				p.pods--
			}
			if len(p.some) < samples && pod.Spec.NodeName != "" {
				p.some = append(p.some, pod)
			}
		} else if e.Kind == "Node" {
			p.nodes++
		}
		if e.Type == "DELETED" {
			delete(p.kept, key)
			p.store.Remove(objects[i])
			continue
		}
		p.kept[key] = objects[i]
		if err := p.store.Apply(objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// weigh measures the memory for nodes and pods: of the store alone, and with the objects of the cache. Memory that
// both share counts for the cache.
func (p *player) weigh() {
	p.store.Snapshot()
	all := heap()
	p.out.Nodes, p.out.Pods = p.nodes, p.pods
	p.out.BytesPerNode = perOne(p.first, p.empty, p.nodes)
	p.out.BytesPerPodWithObject = perOne(all, p.first, p.pods)
	maps.DeleteFunc(p.kept, func(_ string, o client.Object) bool { _, is := o.(*corev1.Pod); return is })
	p.out.BytesPerPod = perOne(heap(), p.first, p.pods)
}

func perOne(now, before uint64, n int) int64 {
	if n == 0 {
		return 0
	}
	return (int64(now) - int64(before)) / int64(n)
}

// heap returns the bytes that are in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// snapshots takes a snapshot after one event, again and again.
func (p *player) snapshots() error {
	var took []time.Duration
	last := p.store.Snapshot()
	for i, old := range p.some {
		pod := old.DeepCopy()
		pod.Name, pod.UID, pod.ResourceVersion = "one-more", types.UID(fmt.Sprint("uid-of-one-more-", i)),
			strconv.Itoa(10_000_000+2*i)
		start := time.Now()
		if err := p.store.Apply(pod); err != nil {
			return err
		}
		seen := p.store.Snapshot()
		took = append(took, time.Since(start))
		if seen == last {
			return fmt.Errorf("pod %s changed nothing in the store", pod.UID)
		}
		p.store.Remove(pod)
		last = p.store.Snapshot()
	}
	if len(took) == 0 {
		return errors.New("the recording has no pod that is bound")
	}
	slices.Sort(took)
	p.out.SnapshotSeconds = took[len(took)/2].Seconds()
	p.out.Snapshot99Seconds = took[len(took)*99/100].Seconds()
	return nil
}
