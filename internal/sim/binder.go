package sim

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/ties"
)

// room is a node and the resources that are free on it.
type room struct {
	node     *corev1.Node
	cpu, mem int64 // millicores, bytes
	pods     int64
	ports    []int32 // of the host
	disks    map[string]bool
	most     int // how many disks the node attaches
}

// rooms returns the nodes, by name, with the resources that bound pods and pods being bound leave free, and how these
// pods are tied to others.
func (c *cluster) rooms() ([]*room, *ties.Cluster) {
	var list []*room
	var nodes []*corev1.Node
	byName := map[string]*room{}
	c.world.server.All(&corev1.Node{}, func(o client.Object) {
		node := o.(*corev1.Node)
		a := node.Status.Allocatable
		r := &room{node: node, cpu: a.Cpu().MilliValue(), mem: a.Memory().Value(), pods: a.Pods().Value(),
			most: unlimitedDisks}
		list, byName[node.Name], nodes = append(list, r), r, append(nodes, node)
	})
	tied := ties.New(nodes, nil)
	c.world.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		name := pod.Spec.NodeName
		if name == "" {
			name = c.assumed[pod.UID]
		}
		if r := byName[name]; r != nil && pod.Status.Phase != corev1.PodSucceeded &&
			pod.Status.Phase != corev1.PodFailed {
			r.take(pod)
			tied.Bind(pod, name)
		}
	})
	c.attached(byName)
	return list, tied
}

func asks(pod *corev1.Pod) (cpu, mem int64) {
	requests := pod.Spec.Containers[0].Resources.Requests
	return requests.Cpu().MilliValue(), requests.Memory().Value()
}

func (r *room) take(pod *corev1.Pod) {
	cpu, mem := asks(pod)
	r.cpu, r.mem, r.pods = r.cpu-cpu, r.mem-mem, r.pods-1
	r.ports = append(r.ports, hostPortsOf(pod)...)
	if name := diskName(pod); name != "" {
		r.disk(name)
	}
}

// fits is the scheduler's filter for single pods, for the fields that simulated pods use.
func (r *room) fits(pod *corev1.Pod) bool {
	cpu, mem := asks(pod)
	if r.node.Spec.Unschedulable || r.cpu < cpu || r.mem < mem || r.pods < 1 {
		return false
	}
	return r.admits(pod)
}

// schedule decides for all waiting pods, and binds them a moment later: by then a node may have been tainted.
func (c *cluster) schedule() {
	rooms, tied := c.rooms()
	for _, pod := range c.byPriority() {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || c.assumed[pod.UID] != "" {
			continue
		}
		d := newDice(c.world.script.Seed, "bind", pod.Name, c.world.now.String())
		var fitting []*room
		for _, r := range rooms {
			if r.fits(pod) && r.attaches(pod) && c.reaches(pod, r.node) && tied.Refusal(pod, r.node) == "" {
				fitting = append(fitting, r)
			}
		}
		if len(fitting) == 0 {
			c.unschedulable(pod)
			c.preempt(pod, rooms, tied)
			continue
		}
		chosen := fitting[d.n(len(fitting))]
		chosen.take(pod)
		tied.Bind(pod, chosen.node.Name)
		c.assumed[pod.UID] = chosen.node.Name
		name, uid, node := pod.Name, pod.UID, chosen.node.Name
		made := c.makeDisk(pod, node)
		if made > 0 {
			c.choose(pod, node)
		}
		c.world.after(made+d.between(time.Millisecond, 200*time.Millisecond), func() { c.bind(name, uid, node) })
	}
}

func (c *cluster) unschedulable(pod *corev1.Pod) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return
		}
	}
	change(c.world, &corev1.Pod{}, client.ObjectKeyFromObject(pod), apiserver.Status, func(p *corev1.Pod) {
		podCondition(p, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, c.world.clock())
	})
}

// choose names the node of a pod whose disk is still to come in its status (NominatedNodeNameForExpectation, on since
// Kubernetes 1.35), or takes the name back with "".
func (c *cluster) choose(pod *corev1.Pod, node string) {
	if pod.Status.NominatedNodeName == node {
		return
	}
	change(c.world, &corev1.Pod{}, client.ObjectKeyFromObject(pod), apiserver.Status, func(p *corev1.Pod) {
		p.Status.NominatedNodeName = node
	})
}

func (c *cluster) bind(name string, uid types.UID, node string) {
	delete(c.assumed, uid)
	pod := c.podOf(name, uid)
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	if c.world.server.Peek(&corev1.Node{}, client.ObjectKey{Name: node}) == nil {
		c.choose(pod, "")
		c.soon("bind", 50*time.Millisecond, 800*time.Millisecond, c.schedule)
		return
	}
	key := client.ObjectKeyFromObject(pod)
	if c.refuses {
		change(c.world, &corev1.Pod{}, key, apiserver.Status, func(p *corev1.Pod) {
			podCondition(p, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulerError,
				c.world.clock())
			p.Status.NominatedNodeName = ""
		})
		c.soon("bind", time.Second, 10*time.Second, c.schedule) // kube-scheduler backs off
		return
	}
	change(c.world, &corev1.Pod{}, key, apiserver.Main, func(p *corev1.Pod) { p.Spec.NodeName = node })
	change(c.world, &corev1.Pod{}, key, apiserver.Status, func(p *corev1.Pod) {
		podCondition(p, corev1.PodScheduled, corev1.ConditionTrue, "", c.world.clock())
		p.Status.NominatedNodeName = ""
	})
	if bound := c.podOf(name, uid); bound != nil {
		c.attach(bound)
	}
	if c.world.verbose() && !strings.HasPrefix(node, foreignPrefix) {
		c.world.tell("pod %s is bound to %s", name, node)
	}
}
