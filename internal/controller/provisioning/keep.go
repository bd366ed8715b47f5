package provisioning

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file makes kube-scheduler reserve room for pods on nodes that were launched for them. engine.PlacesToKeep says
// for which pods (B-16).

// release frees room that is kept for pods which get no place there: the plan launches another node for them, or finds
// none. Kept but unused room keeps other pods away.
func (c *Controller) release(ctx context.Context, s *cluster.Snapshot, p plan.Plan) {
	elsewhere := map[string]bool{}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			elsewhere[pod.UID] = true
		}
	}
	for _, u := range p.Unplaced {
		elsewhere[u.Pod.UID] = true
	}
	var pods []*cluster.Pod
	for _, pod := range s.Pending {
		if pod.Kept != "" && elsewhere[pod.UID] {
			pods = append(pods, pod)
		}
	}
	if len(pods) > 0 && c.config.Release != nil {
		c.config.Release(ctx, pods)
	}
}

// Places keeps room for pods with status.nominatedNodeName: pods of the same or a lower priority leave it free. It
// only helps. If a nomination fails, the scheduler binds the pod wherever it likes. All exported fields are required.
// It is safe for concurrent use.
type Places struct {
	Client client.Client
	Now    func() time.Time
	Log    logr.Logger

	mu      sync.Mutex
	opens   map[string]opening // by claim, for nodes about to open
	keeping int                // number of nodes for which Keep is running
	rounds  int                // how often keeping has dropped to 0
}

// opening is a node about to open: since when, and in which round of keeping places.
type opening struct {
	since time.Time
	round int
}

const (
	// keepWait is the longest that a node waits for places on other nodes. keepStep is how soon it asks again.
	keepWait = 2 * time.Second
	keepStep = 100 * time.Millisecond
)

// Open keeps places on a claim's node that is about to open. It returns how long the node must wait before it opens, 0
// for not at all. A node that needs no kept places opens after those that do, or it would be full when they open. The
// first call decides which it is.
func (p *Places) Open(ctx context.Context, s *cluster.Snapshot, claim, node string) (wait time.Duration) {
	now := p.Now()
	opens, first, busy := p.opening(claim, now)
	if first {
		if pods := engine.PlacesToKeep(s, claim, node, opens, now.Unix()); len(pods) > 0 {
			p.begin()
			defer p.end()
			p.Keep(ctx, pods, node)
			return 0
		}
	}
	if busy {
		return keepStep
	}
	return 0
}

// opening returns the claims whose nodes were recently about to open, if this claim is new among them (first). busy
// says that it should wait for places being kept.
func (p *Places) opening(claim string, now time.Time) (opens map[string]bool, first, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, known := p.opens[claim]
	if known = known && recent(own, now); !known {
		own = opening{now, p.rounds}
		opens = map[string]bool{}
		for other, o := range p.opens {
			if recent(o, now) {
				opens[other] = true
			} else {
				delete(p.opens, other)
			}
		}
		if p.opens == nil {
			p.opens = map[string]opening{}
		}
		p.opens[claim] = own
	}
	return opens, !known, p.keeping > 0 && own.round == p.rounds && now.Sub(own.since) < keepWait
}

// recent reports whether the node may still be about to open. Otherwise it is open, or never will be.
func recent(o opening, now time.Time) bool {
	age := now.Sub(o.since)
	return age >= 0 && age < underWay
}

func (p *Places) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeping++
}

func (p *Places) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeping--; p.keeping == 0 {
		p.rounds++
	}
}

// Keep keeps room for pods on a node. It skips pods that no longer wait, and those that kube-scheduler has nominated
// itself.
func (p *Places) Keep(ctx context.Context, pods []*cluster.Pod, node string) {
	for _, pod := range pods {
		p.nominate(ctx, pod, node, func(pod *corev1.Pod) bool {
			return (translate.Provisionable(pod) || translate.Untried(pod)) && translate.KeptOn(pod) != node
		})
	}
}

// Release frees the room kept for pods.
func (p *Places) Release(ctx context.Context, pods []*cluster.Pod) {
	for _, pod := range pods {
		p.nominate(ctx, pod, "", func(pod *corev1.Pod) bool { return translate.KeptOn(pod) != "" })
	}
}

func (p *Places) nominate(ctx context.Context, of *cluster.Pod, node string, wanted func(*corev1.Pod) bool) {
	var pod corev1.Pod
	err := p.Client.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, &pod)
	if err == nil && wanted(&pod) {
		err = p.Client.Status().Patch(ctx, pod.DeepCopy(), patch.Place(&pod, node, translate.PlaceKept(node, p.Now())))
	}
	if client.IgnoreNotFound(err) != nil {
		p.Log.V(1).Info("could not keep a pod's place", "pod", of.Ref(), "node", node, "reason", err.Error())
	}
}
