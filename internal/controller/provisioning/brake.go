package provisioning

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file is the brake (P-35). It notices when nodes are launched for pods again and again without helping them, and
// launches less. The cause does not matter: planning may be wrong about such nodes, or they may never come up.
//
// A round of launches for an ask of pods is in vain when one of its claims has got a machine and
//
//   - is gone before any pod other than daemons was on its node, or
//   - has joined without such a pod, and the plan expects no pending pod there but wants another node,
//
// while pods with the same ask still wait. A pod waits from when kube-scheduler finds no node for it until it is bound
// or gone. A binding that is tried and refused meanwhile does not change that.
//
// The first round in vain changes nothing. After the second, the pool launches nothing for such pods for a while, then
// one node as a try, and so on; the wait doubles each time. A try whose room other pods take was not in vain, and the
// next one follows. When one of the pods is bound, anywhere, all is forgotten.

const (
	// freeRounds is how many rounds may be in vain before the brake holds.
	freeRounds = 1
	// holdFirst is how long it then holds. Each further try in vain doubles that, up to holdMost.
	holdFirst = time.Minute
	holdMost  = 30 * time.Minute
	// forgetAfter is when rounds in vain are forgotten without a bound pod, because no pod has waited for so long.
	forgetAfter = 30 * time.Minute
)

// Brake remembers which launches were in vain. It learns about existing claims from the claims. With the process only
// the count of earlier rounds in vain is lost. It is safe for concurrent use and calls nothing while locked.
type Brake struct {
	mu       sync.Mutex
	rounds   map[cluster.Hold]*rounds
	tries    map[string]*try            // by UID of the claim
	looks    uint64                     // how many looks there were
	over     map[string]struct{}        // claims, by UID, that pods have used: see retire
	used     map[string]*usedNode       // by name: see standing
	bound    map[types.UID]struct{}     // bound pods of those in rounds.waiting
	waits    map[types.UID]*cluster.Pod // once pending pods that are neither bound nor gone
	changed  map[string]int             // pools with news, and their rounds in vain
	messages map[string]string          // by pool: what is held back
	daemons  []cluster.Daemon           // of the last snapshot
	lessons  []Lesson                   // not reported yet
	taught   map[taught]time.Time       // since when snapshots have what was learnt
}

// try is a claim that was launched for pods and has had none yet.
type try struct {
	claim, node, pool     string // node: "" until it has joined
	asks                  []string
	launched, initialized bool
	ending                bool
	look                  uint64          // the last look that has seen it
	spent                 map[string]bool // asks for which it no longer counts
	// counted is what daemons were expected to request, object the node as last seen: see lessons.go.
	counted map[string]resources.Vector
	object  *cluster.Node
}

// rounds are the launches in vain of a pool for one ask.
type rounds struct {
	vain    int
	until   time.Time // no launch before this time; zero while the brake does not hold
	seen    time.Time // when a pod last waited
	cause   string
	pod     string                 // one of the pods
	waiting map[types.UID]struct{} // the pods that waited at the last look
	filled  []filled               // the rounds whose nodes daemons had filled
}

// NewBrake returns a brake that has seen nothing.
func NewBrake() *Brake {
	return &Brake{
		rounds: map[cluster.Hold]*rounds{}, tries: map[string]*try{}, over: map[string]struct{}{},
		used: map[string]*usedNode{}, bound: map[types.UID]struct{}{},
		waits: map[types.UID]*cluster.Pod{}, changed: map[string]int{}, messages: map[string]string{},
	}
}

// Bound records that a pod other than daemons was bound to a node. Snapshots miss pods that end soon.
func (b *Brake) Bound(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u := b.used[pod.Spec.NodeName]; u != nil {
		u.missed = false
	} else {
		b.used[pod.Spec.NodeName] = &usedNode{}
	}
	for _, r := range b.rounds {
		if _, waits := r.waiting[pod.UID]; waits {
			b.bound[pod.UID] = struct{}{}
		}
	}
	delete(b.waits, pod.UID)
}

// Gone records that a pod ends or is gone.
func (b *Brake) Gone(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, pod.UID)
}

// Message returns what is held back for a pool and why, "" if nothing is.
func (b *Brake) Message(pool string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages[pool]
}

// Look learns from a snapshot what has become of the claims that were launched for pods.
func (b *Brake) Look(s *cluster.Snapshot, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks++
	b.standing(s)
	waiting := b.waitingOf(s)
	b.forget(s, waiting, now)
	b.daemons = s.Daemons
	b.correct(s, now)
	over := 0
	for _, node := range s.Nodes {
		if len(node.For) == 0 || node.ClaimUID == "" || node.Pool == "" {
			continue
		}
		if b.isOver(node) {
			over++
			continue
		}
		t := b.tries[node.ClaimUID]
		if t == nil {
			t = &try{claim: node.Claim, pool: node.Pool, asks: node.For, spent: map[string]bool{}}
			b.tries[node.ClaimUID] = t
		}
		t.node, t.launched, t.initialized, t.ending = node.Name, node.Launched, node.Initialized, node.Deleting
		t.look = b.looks
		t.count(s, node)
	}
	b.sweep(s, over)
	var ended []string
	for uid, t := range b.tries {
		if t.look != b.looks || t.ending {
			ended = append(ended, uid)
		}
	}
	slices.Sort(ended)
	for _, uid := range ended {
		t := b.tries[uid]
		if t.launched {
			b.inVain(t, waiting, now, "went before a pod was on it")
		}
		for _, ask := range t.asks {
			t.spent[ask] = true
		}
		if t.look != b.looks {
			delete(b.tries, uid)
		}
	}
}

// waitingOf returns the waiting pods by ask. The asks of replicas, floors and buffers always wait.
func (b *Brake) waitingOf(s *cluster.Snapshot) map[string][]*cluster.Pod {
	waiting := map[string][]*cluster.Pod{plan.AskReplicas: nil, plan.AskFloor: nil}
	for _, pod := range s.Buffers {
		waiting[pod.Shape.Ask()] = nil
	}
	pending := map[types.UID]bool{}
	for _, pod := range s.Pending {
		for _, ask := range pod.Shape.Asks() {
			waiting[ask] = append(waiting[ask], pod)
		}
		if pod.Node == "" {
			b.waits[types.UID(pod.UID)] = pod
			pending[types.UID(pod.UID)] = true
		}
	}
	var tried []types.UID // few, compared with all that wait
	for uid := range b.waits {
		if !pending[uid] {
			tried = append(tried, uid)
		}
	}
	slices.Sort(tried)
	for _, uid := range tried {
		pod := b.waits[uid]
		for _, ask := range pod.Shape.Asks() {
			waiting[ask] = append(waiting[ask], pod)
		}
	}
	return waiting
}

// forget drops the rounds of which a pod was bound, or of which no pod has waited for a long time.
func (b *Brake) forget(s *cluster.Snapshot, waiting map[string][]*cluster.Pod, now time.Time) {
	for hold, r := range b.rounds {
		pods, waits := waiting[hold.Ask]
		if waits {
			r.seen = now
		}
		helped := now.Sub(r.seen) > forgetAfter || s.Pool(hold.Pool) == nil
		for uid := range r.waiting {
			if _, bound := b.bound[uid]; bound {
				helped = true
			}
		}
		if helped {
			b.helped(hold)
			continue
		}
		r.waiting = map[types.UID]struct{}{}
		for _, pod := range pods {
			r.waiting[types.UID(pod.UID)] = struct{}{}
		}
	}
	clear(b.bound)
}

// helped forgets the rounds in vain, and no longer counts existing claims for them.
func (b *Brake) helped(hold cluster.Hold) {
	if b.rounds[hold] == nil {
		return
	}
	delete(b.rounds, hold)
	b.spend(hold)
	b.changed[hold.Pool] += 0
}

func (b *Brake) spend(hold cluster.Hold) {
	for _, t := range b.tries {
		if t.pool == hold.Pool && slices.Contains(t.asks, hold.Ask) {
			t.spent[hold.Ask] = true
		}
	}
}

// inVain counts a round in vain for each ask of a try for which pods still wait. All existing claims belong to that
// round.
func (b *Brake) inVain(t *try, waiting map[string][]*cluster.Pod, now time.Time, what string) bool {
	counted := false
	for _, ask := range t.asks {
		pods, waits := waiting[ask]
		if !waits || t.spent[ask] {
			continue
		}
		hold := cluster.Hold{Pool: t.pool, Ask: ask}
		r := b.rounds[hold]
		if r == nil {
			r = &rounds{waiting: map[types.UID]struct{}{}}
			b.rounds[hold] = r
		}
		for i, pod := range pods {
			if r.waiting[types.UID(pod.UID)] = struct{}{}; i == 0 {
				r.pod = pod.Ref()
			}
		}
		r.vain, r.seen, r.cause = r.vain+1, now, "NodeClaim "+t.claim+" "+what
		if r.vain > freeRounds {
			r.until = now.Add(holdFor(ask, r.vain))
		}
		b.spend(hold)
		if b.learn(t, hold, r, pods, now) {
			delete(b.rounds, hold) // the next node is planned with what was learnt
		}
		b.changed[t.pool]++
		counted = true
	}
	return counted
}

// holdFor returns how long the brake holds after so many rounds in vain. If the nodes lacked storage, the next one
// will hardly have more (K-58).
func holdFor(ask string, vain int) time.Duration {
	if _, is := cluster.IsStorageAsk(ask); is {
		return holdMost
	}
	return min(holdMost, holdFirst<<min(vain-freeRounds-1, 10))
}

// Judge checks whether a plan launches nodes for an ask although such nodes have joined and stand unused. Launches
// that only the brake prevents count too. It reports whether to plan again: a round in vain was counted, or a
// held-back buffer found room, so its remaining lack has another reason.
func (b *Brake) Judge(s *cluster.Snapshot, p plan.Plan, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	counted := b.roomFound(s, p) && len(p.Buffers.Unplaced) > 0
	if len(p.Launches)+len(p.Unplaced)+len(p.Buffers.Unplaced) == 0 || len(b.tries) == 0 {
		return counted
	}
	wanted, expecting := b.wantedBy(s, p), map[string]bool{}
	for _, nomination := range slices.Concat(p.Nominations, p.Buffers.Places) {
		expecting[nomination.Node] = true
	}
	waiting := map[string][]*cluster.Pod(nil)
	for _, uid := range slices.Sorted(maps.Keys(b.tries)) {
		t := b.tries[uid]
		if t.node == "" || t.ending || expecting[t.node] || expecting[t.claim] {
			continue
		}
		only, what := *t, "has joined and none of them can run there"
		if t.initialized {
			what = "is initialized and none of them can run there"
		}
		only.asks = slices.DeleteFunc(slices.Clone(t.asks), func(ask string) bool {
			return !wanted[cluster.Hold{Pool: t.pool, Ask: ask}] || plan.ForItself(ask)
		})
		if len(only.asks) == 0 {
			continue
		}
		if waiting == nil {
			waiting = b.waitingOf(s)
		}
		counted = b.inVain(&only, waiting, now, what) || counted
	}
	return counted
}

// roomFound records which nodes have the room for buffers that they were launched for. No pod has to come there
// (K-37). It reports whether a hold for that was released.
func (b *Brake) roomFound(s *cluster.Snapshot, p plan.Plan) (freed bool) {
	if len(p.Buffers.Places) == 0 {
		return false
	}
	asks := make(map[string]string, len(s.Buffers))
	for _, pod := range s.Buffers {
		asks[pod.UID] = pod.Shape.Ask()
	}
	for _, uid := range slices.Sorted(maps.Keys(b.tries)) {
		t := b.tries[uid]
		if !t.initialized {
			continue
		}
		for _, place := range p.PlacesOf(t.node) {
			if ask := asks[place.Pod.UID]; slices.Contains(t.asks, ask) {
				b.retire(uid)
				hold := cluster.Hold{Pool: t.pool, Ask: ask}
				freed = freed || b.rounds[hold] != nil && !b.rounds[hold].until.IsZero()
				b.helped(hold)
			}
		}
	}
	return freed
}

// wantedBy returns what a plan launches nodes for, or would without the brake.
func (b *Brake) wantedBy(s *cluster.Snapshot, p plan.Plan) map[cluster.Hold]bool {
	wanted := map[cluster.Hold]bool{}
	for _, launch := range p.Launches {
		for _, ask := range launch.For {
			wanted[cluster.Hold{Pool: launch.Pool, Ask: ask}] = true
		}
	}
	if len(p.Unplaced)+len(p.Buffers.Unplaced) == 0 || len(b.rounds) == 0 {
		return wanted
	}
	unplaced, asks := map[string]bool{}, map[string]bool{}
	for _, u := range slices.Concat(p.Unplaced, p.Buffers.Unplaced) {
		unplaced[u.Pod.UID] = true
	}
	for _, pod := range slices.Concat(s.Pending, s.Buffers) {
		if unplaced[pod.UID] {
			for _, ask := range pod.Shape.Asks() {
				asks[ask] = true
			}
		}
	}
	for hold, r := range b.rounds {
		if asks[hold.Ask] && !r.until.IsZero() {
			wanted[hold] = true
		}
	}
	return wanted
}

// Holds returns what is held back at now, with the reason. due are those of which one node each may be tried.
func (b *Brake) Holds(now time.Time) (held map[cluster.Hold]string, due map[cluster.Hold]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hold, r := range b.rounds {
		if r.until.IsZero() {
			continue
		}
		if held == nil {
			held, due = map[cluster.Hold]string{}, map[cluster.Hold]bool{}
		}
		held[hold] = b.text(hold, r)
		if b.underWay(hold) == "" && !now.Before(r.until) {
			due[hold] = true
		}
	}
	return held, due
}

// underWay returns the claim that is the current try, "" for none. A try whose node has had a pod is over (isOver). It
// was another pod that took the room: one of the waiting pods would have reset everything.
func (b *Brake) underWay(hold cluster.Hold) string {
	name := ""
	for _, t := range b.tries {
		if t.pool == hold.Pool && !t.ending && slices.Contains(t.asks, hold.Ask) && !t.spent[hold.Ask] {
			name = max(name, t.claim)
		}
	}
	return name
}

func (b *Brake) text(hold cluster.Hold, r *rounds) string {
	next := "the next one is launched after " + r.until.UTC().Format(time.RFC3339)
	if name := b.underWay(hold); name != "" {
		next = "NodeClaim " + name + " is another try"
	}
	pods := "such pods"
	if r.pod != "" {
		pods = "pods such as " + r.pod
	}
	return fmt.Sprintf("%d rounds of nodes for %s were in vain, the last since %s; %s", r.vain, pods, r.cause, next)
}

// News is what to report about a pool.
type News struct {
	Text   string // what is held back and why, "" if nothing is any more
	Rounds int    // rounds in vain since the last news
}

// News returns the pools whose message has changed, or that had further rounds in vain.
func (b *Brake) News() map[string]News {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := map[string]News{}
	for pool, rounds := range b.changed {
		var worst cluster.Hold
		for hold, r := range b.rounds {
			if hold.Pool != pool || r.until.IsZero() {
				continue
			}
			if w := b.rounds[worst]; w == nil || r.vain > w.vain || r.vain == w.vain && hold.Ask < worst.Ask {
				worst = hold
			}
		}
		text := ""
		if r := b.rounds[worst]; r != nil {
			text = b.text(worst, r)
		}
		if rounds > 0 || text != b.messages[pool] {
			news[pool] = News{Text: text, Rounds: rounds}
		}
		if b.messages[pool] = text; text == "" {
			delete(b.messages, pool)
		}
	}
	clear(b.changed)
	return news
}
