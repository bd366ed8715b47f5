// Package apply carries plans out. The [Applier] is the only creator and the only voluntary remover of NodeClaims:
// provisioning, disruption and static pools share it, so the checks below hold for all of them.
//
// It trusts a plan no further than it must. Each launch is checked once more against the limits with what this process
// itself has just created (L-13), and gets a name that is a function of what it is for, so that the API server's own
// uniqueness of names turns a repeated or a competing create into AlreadyExists: slots for pools with a hard limit
// (L-14), a hash over pool and pods for all others (P-32). Removal goes in two steps, intent first (D-10): see
// remove.go.
//
// Every method does a bounded number of calls, waits for nothing and can be called again at any point.
//
// Start with [Applier.Apply].
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Store is the part of the world that the Applier needs.
type Store interface {
	Snapshot() *cluster.Snapshot
	Version() uint64 // of the picture
	Usage(pool string) limit.Usage
	Ceiling() limit.Ceiling
	// LimitClaims tells the hard limit of the whole cluster as it is now.
	LimitClaims(most int64)
	// ClaimsUnknown tells why that is not known, until it is told, and reports whether that is news.
	ClaimsUnknown(why string) bool
	// Overlaid reports whether NodeOverlays change the price or the capacity of one of these instance types.
	Overlaid(class *karpenterv1.NodeClassReference, pool string, types []string) (price, capacity bool)
	// Promise may be called at the same time for several claims; see Each of [Config].
	Promise(claim *karpenterv1.NodeClaim, reserve resources.Vector, pods []plan.PodRef)
	Nominate(pods []plan.PodRef, node string)
}

// Owners says whose objects are; package fleet implements it. What is not ours is never written to, whatever a plan says.
type Owners interface {
	OwnsPool(pool *karpenterv1.NodePool) bool
	OwnsClaim(claim *karpenterv1.NodeClaim) bool
	OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool
}

// Config is what an Applier works with. All fields are required but Each, Created, Decided and Log.
type Config struct {
	Client client.Client // reads from a cache, writes to the API server
	Live   client.Reader // reads from the API server; used only after a name was found taken
	Store  Store
	Fleet  Owners
	Now    func() time.Time
	// Cluster is the hard limit of the whole cluster, nil for none.
	Cluster *ClusterLimit
	// Each calls do with 0 to n-1 and returns when all calls have; they may run at the same time. Nil: one after the
	// other.
	Each func(n int, do func(i int))
	// Decided is called for each decision, with what became of it, for metrics (U-10) and for the history (U-32). It
	// returns the decision's ID, "" when nobody keeps it. It makes no call, and may be called at the same time.
	Decided func(Decision, About) string
	Log     logr.Logger
}

// Applier carries out plans. All that it keeps between them is what they have spent of what is paid for anyway.
type Applier struct {
	config Config
	spent  spent
}

// New returns an Applier.
func New(config Config) *Applier {
	if config.Decided == nil {
		config.Decided = func(Decision, About) string { return "" }
	}
	if config.Each == nil {
		config.Each = func(n int, do func(i int)) {
			for i := range n {
				do(i)
			}
		}
	}
	return &Applier{config: config}
}

// Outcome is what became of a plan.
type Outcome struct {
	// Launched has one entry for each launch of the plan for which a NodeClaim exists now.
	Launched []Launched
	// Refused has one entry for each launch for which there is none. The pods are still pending: plan again.
	Refused []Refused
	// Open counts the launches of which nobody knows whether there is a NodeClaim: the API server gave no answer. The picture may
	// lack a node, therefore, until its claim is seen.
	Open int
	// Marked are the names of claims that now carry the intent to be removed.
	Marked []string
}

// Launched is a NodeClaim that stands for a launch of the plan.
type Launched struct {
	Claim string
	Pool  string
	Pods  []plan.PodRef
}

// Refused is a launch that was not carried out, and why.
type Refused struct {
	Pool string
	Why  string
	Pods []plan.PodRef
}

// Apply carries p out as far as it still holds. "Not any more" is an answer and stands in the outcome; the error joins
// what went wrong on the way to the API server, after everything else was still tried.
func (a *Applier) Apply(ctx context.Context, p plan.Plan) (Outcome, error) {
	marked, markErr := a.markAll(ctx, p) // first: the intent stands before its effects (D-10)
	p, refused := withoutUnmarked(p, marked)
	out, err := a.launchAll(ctx, p)
	for node, pods := range nominations(p) {
		a.config.Store.Nominate(pods, node)
	}
	out.Marked, out.Refused = marked, append(out.Refused, refused...)
	return out, errors.Join(err, markErr)
}

// withoutUnmarked leaves out launches that replace claims which the plan removes and which could not be marked.
func withoutUnmarked(p plan.Plan, marked []string) (plan.Plan, []Refused) {
	var missed []string
	for _, remove := range p.Removes {
		if !slices.Contains(marked, remove.Claim) {
			missed = append(missed, remove.Claim)
		}
	}
	var kept []plan.Launch
	var refused []Refused
	for _, launch := range p.Launches {
		if i := slices.IndexFunc(launch.Replaces, func(claim string) bool { return slices.Contains(missed, claim) }); i >= 0 {
			refused = append(refused, Refused{Pool: launch.Pool, Why: fmt.Sprintf("NodeClaim %s, which it was to replace, is not marked", launch.Replaces[i]), Pods: launch.Pods})
			continue
		}
		kept = append(kept, launch)
	}
	p.Launches = kept
	return p, refused
}

// markAll writes the intents of a plan; their order does not matter.
func (a *Applier) markAll(ctx context.Context, p plan.Plan) ([]string, error) {
	removes, awaited := p.Removes, map[string]bool{} // claims for which something has to come first
	for _, launch := range p.Launches {
		for _, claim := range launch.Replaces {
			awaited[claim] = true
		}
	}
	done, failures := make([]bool, len(removes)), make([]error, len(removes))
	a.config.Each(len(removes), func(i int) {
		var err error
		if done[i], err = a.mark(ctx, removes[i], !awaited[removes[i].Claim]); err != nil {
			failures[i] = fmt.Errorf("marking NodeClaim %s for removal: %w", removes[i].Claim, err)
		}
	})
	var marked []string
	for i, remove := range removes {
		if done[i] {
			marked = append(marked, remove.Claim)
		}
	}
	return marked, errors.Join(failures...)
}

// nominations groups a plan's nominations by node. Order does not matter: each pod is nominated once.
func nominations(p plan.Plan) map[string][]plan.PodRef {
	byNode := map[string][]plan.PodRef{}
	for _, nomination := range p.Nominations {
		byNode[nomination.Node] = append(byNode[nomination.Node], nomination.Pod)
	}
	return byNode
}
