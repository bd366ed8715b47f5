// Package apply carries plans out. The [Applier] is the only creator and the only voluntary remover of NodeClaims.
// Provisioning, disruption and static pools share it, so its checks hold for all of them.
//
// It does not trust a plan blindly. It checks each launch again against the limits, counting what this process has
// just created (L-13). Each claim's name is a function of its purpose. So a repeated or competing create gets
// AlreadyExists from the API server. Pools with a hard limit use slots (L-14), all others a hash over pool and pods
// (P-32). Removal takes two steps, intent first (D-10): see remove.go.
//
// Every method makes a bounded number of calls, waits for nothing and can be called again at any point.
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
	Version() uint64 // of the snapshot
	Usage(pool string) limit.Usage
	Ceiling() limit.Ceiling
	// LimitClaims sets the current hard limit of the whole cluster.
	LimitClaims(most int64)
	// ClaimsUnknown says why that limit is not known, until LimitClaims is called. It reports whether this is news.
	ClaimsUnknown(why string) bool
	// Overlaid reports whether NodeOverlays change the price or the capacity of one of these instance types.
	Overlaid(class *karpenterv1.NodeClassReference, pool string, types []string) (price, capacity bool)
	// Promise may be called concurrently for several claims; see Each of [Config].
	Promise(claim *karpenterv1.NodeClaim, reserve resources.Vector, pods []plan.PodRef)
	Nominate(pods []plan.PodRef, node string)
}

// Owners says which objects are ours; package fleet implements it. Others are never written to, whatever a plan says.
type Owners interface {
	OwnsPool(pool *karpenterv1.NodePool) bool
	OwnsClaim(claim *karpenterv1.NodeClaim) bool
	OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool
}

// Config configures an Applier. All fields are required except Cluster, Each, Decided and Log.
type Config struct {
	Client client.Client // reads from a cache, writes to the API server
	Live   client.Reader // reads from the API server
	Store  Store
	Fleet  Owners
	Now    func() time.Time
	// Cluster is the hard limit of the whole cluster, nil for none.
	Cluster *ClusterLimit
	// Each calls do with 0 to n-1, possibly concurrently, and returns when all calls have. Nil: one after the other.
	Each func(n int, do func(i int))
	// Decided is called for each decision with its outcome, for metrics (U-10) and the history (U-32). It returns the
	// decision's ID, "" if nobody keeps it. It makes no API calls and may be called concurrently.
	Decided func(Decision, About) string
	Log     logr.Logger
}

// Applier carries out plans. Between plans it keeps only what they have spent of commitments and reservations.
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

// Outcome is the result of applying a plan.
type Outcome struct {
	// Launched has one entry for each launch whose NodeClaim exists now.
	Launched []Launched
	// Refused has one entry for each launch that was refused. Its pods are still pending: plan again, but not for one
	// that was denied, which would be denied again.
	Refused []Refused
	// Open counts the launches whose NodeClaim may or may not exist, because the API server gave no answer. Until that
	// claim is seen, the snapshot may lack a node.
	Open int
	// Marked are the names of claims that now carry the intent to remove them.
	Marked []string
}

// Launched is a NodeClaim that stands for a launch of the plan.
type Launched struct {
	Claim string
	Pool  string
	Pods  []plan.PodRef
	For   []string // as in plan.Launch
}

// Refused is a launch that was not carried out, and why.
type Refused struct {
	Pool string
	Why  string
	Pods []plan.PodRef
	For  []string // as in plan.Launch
	// Denied says that the API server refuses the NodeClaim for what it is: it is invalid, or an admission policy or
	// webhook forbids it. Why is the answer. The rest of the plan is not affected.
	Denied bool
}

// Apply carries p out as far as it still holds. A launch that no longer holds is in the outcome, not an error. The
// error joins all failures of API calls; the rest of the plan is carried out nevertheless.
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

// withoutUnmarked leaves out launches whose replaced claims could not be marked.
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
		if i := slices.IndexFunc(launch.Replaces,
			func(claim string) bool { return slices.Contains(missed, claim) }); i >= 0 {
			refused = append(refused,
				Refused{Pool: launch.Pool, Why: fmt.Sprintf("NodeClaim %s, which it was to replace, is not marked",
					launch.Replaces[i]), Pods: launch.Pods})
			continue
		}
		kept = append(kept, launch)
	}
	p.Launches = kept
	return p, refused
}

// markAll writes the intents of a plan; their order does not matter.
func (a *Applier) markAll(ctx context.Context, p plan.Plan) ([]string, error) {
	removes, awaited := p.Removes, map[string]bool{} // claims whose replacement has to come first
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
