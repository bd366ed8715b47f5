package world

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// nomination is the place that a plan has given to a pod.
type nomination struct {
	pod    podKey
	from   string // the node it was bound to then, for pods of a node that is being removed
	target string // name of a node, or of a claim
	until  time.Time
}

// nominations are indexed both by pod and by target.
type nominations struct {
	byPod    map[types.UID]nomination
	byTarget map[string]map[types.UID]struct{}
}

func newNominations() nominations {
	return nominations{byPod: map[types.UID]nomination{}, byTarget: map[string]map[types.UID]struct{}{}}
}

func (n nominations) put(uid types.UID, to nomination) {
	n.drop(uid)
	n.byPod[uid] = to
	if n.byTarget[to.target] == nil {
		n.byTarget[to.target] = map[types.UID]struct{}{}
	}
	n.byTarget[to.target][uid] = struct{}{}
}

func (n nominations) drop(uid types.UID) {
	old, found := n.byPod[uid]
	if !found {
		return
	}
	delete(n.byPod, uid)
	delete(n.byTarget[old.target], uid)
	if len(n.byTarget[old.target]) == 0 {
		delete(n.byTarget, old.target)
	}
}

// Promise stores a claim that was just created for pods, as the API server returned it. It counts like a claim that a
// watch has shown. It is forgotten if no watch shows it within the TTL, or its deletion is seen. reserve counts
// against the pool's limits until the instance is known (plan.Launch.Reserve); nil means what the catalogue says. The
// pods are nominated to the claim as by Nominate.
func (s *Store) Promise(claim *karpenterv1.NodeClaim, reserve resources.Vector, pods []plan.PodRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := sight(claim)
	if s.graves.holds(fresh.uid) {
		return
	}
	e := s.claims[claim.Name]
	if e == nil || !e.sameObject(fresh) {
		if !s.putClaim(claim.DeepCopy(), fresh) {
			return
		}
		e = s.claims[claim.Name]
		e.promisedUntil = s.config.Now().Add(s.config.PromiseTTL)
		s.promised[claim.Name] = struct{}{}
		s.wakeAt(e.promisedUntil)
	}
	e.reserve = reserve
	s.refreshClaim(e)
	s.nominate(pods, claim.Name)
}

// Nominate notes that pods are expected to run on a node, or on a claim that has no node yet. A nomination ends when
// the pod is bound or gone, when the node or claim is gone, and after the TTL.
func (s *Store) Nominate(pods []plan.PodRef, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nominate(pods, node)
}

func (s *Store) nominate(pods []plan.PodRef, target string) {
	until := s.config.Now().Add(s.config.PromiseTTL)
	for _, ref := range pods {
		n := nomination{pod: podKey{ref.Namespace, ref.Name}, target: target, until: until}
		e := s.pods[n.pod]
		known := e != nil && e.value != nil && e.value.UID == ref.UID
		if known {
			n.from = e.value.Node
			if s.passedOver(n, e) {
				continue
			}
		}
		s.nominations.put(types.UID(ref.UID), n)
		if known {
			s.renominate(e)
		}
	}
	if len(pods) > 0 {
		s.wakeAt(until)
	}
}

// promisedFor returns where a pod is expected, by its name in snapshots; "" for nowhere. A nomination ends when the
// pod's node changes.
func (s *Store) promisedFor(pod *cluster.Pod) string {
	n, found := s.nominations.byPod[types.UID(pod.UID)]
	if !found {
		return ""
	}
	if n.from != pod.Node {
		if n.from == "" && s.onBinding != nil {
			s.onBinding(s.targetOf(n) == pod.Node)
		}
		s.nominations.drop(types.UID(pod.UID))
		return ""
	}
	return s.targetOf(n)
}

// targetOf returns the node of a nomination, or the claim while that has no node; "" when it is gone.
func (s *Store) targetOf(n nomination) string {
	if e := s.claims[n.target]; e != nil {
		if node := s.nodeOf(e.object); node != "" {
			return node
		}
		return n.target
	}
	if s.nodes[n.target] != nil {
		return n.target
	}
	return ""
}

// OnBinding sets a function that is called, with the Store locked, when kube-scheduler binds a nominated pod. expected
// tells whether the pod got the node of its nomination (K-60).
func (s *Store) OnBinding(f func(expected bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onBinding = f
}

func (s *Store) renominate(e *podEntry) {
	if e.value == nil {
		return
	}
	if promised := s.promisedFor(e.value); promised != e.value.Promised {
		s.derivePod(e, func(pod *cluster.Pod) { pod.Promised = promised })
	}
}

// nominationsChanged updates the pods that are nominated to a node or claim that has come, gone or been joined.
func (s *Store) nominationsChanged(target string) {
	for uid := range s.nominations.byTarget[target] {
		if e := s.pods[s.nominations.byPod[uid].pod]; e != nil && e.uid == uid {
			s.renominate(e)
		}
	}
}

// wakeAt notes that snapshots change at this time without any event.
func (s *Store) wakeAt(at time.Time) {
	if s.wake.IsZero() || at.Before(s.wake) {
		s.wake = at
	}
}

// expire applies what changes by time alone: promises, nominations and protections of pods that have run out, and pods
// that nobody has ended.
func (s *Store) expire(now time.Time) {
	if s.wake.IsZero() || now.Before(s.wake) {
		return
	}
	s.wake = time.Time{}
	for name := range s.promised {
		if e := s.claims[name]; now.Before(e.promisedUntil) {
			s.wakeAt(e.promisedUntil)
		} else {
			s.forgetClaim(e)
		}
	}
	for uid, n := range s.nominations.byPod {
		if now.Before(n.until) {
			s.wakeAt(n.until)
			continue
		}
		s.nominations.drop(uid)
		if e := s.pods[n.pod]; e != nil && e.uid == uid {
			s.renominate(e)
		}
	}
	s.forgetAttaching(now)
	s.expireFresh(now)
	s.expirePassing(now)
	s.expireHeadroom(now)
	for key := range s.protected {
		e := s.pods[key]
		if end := time.Unix(e.protected, 0); now.Before(end) {
			s.wakeAt(end)
			continue
		}
		delete(s.protected, key)
		s.derivePod(e, func(pod *cluster.Pod) { pod.DoNotDisrupt = false })
	}
	s.expireEnding(now)
}

// expireEnding notes which pods that are ending count as stuck now: no node stays for them any longer.
func (s *Store) expireEnding(now time.Time) {
	for key := range s.ending {
		e := s.pods[key]
		if now.Before(e.stuckFrom) {
			s.wakeAt(e.stuckFrom)
			continue
		}
		delete(s.ending, key)
		s.derivePod(e, func(pod *cluster.Pod) { pod.Fixed = true })
	}
}
