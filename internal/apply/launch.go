package apply

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// maxAttempts bounds the names that are tried for one launch. A name is skipped while an earlier claim for the same
// pods has it. That happens a few times at most.
const maxAttempts = 10

// attempt is one launch on its way to a NodeClaim.
type attempt struct {
	launch  plan.Launch
	ordinal int // among the plan's launches for the same pods, or to replace the same claims
	view    *view
	claim   *karpenterv1.NodeClaim // nil until there is one
	company translate.Company      // alike claims that are created with it
	seats   *seats                 // shared by the whole plan
	refusal string                 // why it is not created, when the plan no longer holds
	err     error
	open    bool // with err: the claim may exist nevertheless
	denied  bool // with refusal: by the API server
	// no slot of the cluster was left for it, though others may have places that it could have
	seatless bool

	decision string // ID of the decision; empty if it was not taken just now
}

// atATime is how many claims are created before the age of their pools' views is checked again.
const atATime = 200

// launchAll creates the NodeClaims of a plan in two passes. The first checks each launch against the limits, counting
// those before it. The second creates and promises them, in any order.
func (a *Applier) launchAll(ctx context.Context, p plan.Plan) (Outcome, error) {
	snapshot := a.config.Store.Snapshot()
	attempts := make([]attempt, len(p.Launches))
	used, views, ceiling := map[string]limit.Usage{}, map[string]*view{}, a.config.Store.Ceiling()
	seats := &seats{used: map[int]bool{}}
	same := map[string]int{}
	for i, launch := range p.Launches {
		if views[launch.Pool] == nil {
			views[launch.Pool] = a.look(ctx, snapshot, launch)
		}
		attempts[i] = a.check(snapshot, p, launch, views[launch.Pool], used, &ceiling)
		attempts[i].ordinal, attempts[i].seats = same[purpose(launch)], seats
		same[purpose(launch)]++
	}
	end := a.spent.begin(p.BasedOn, attempts)
	defer func() { end(a.config.Store.Version()) }()
	a.seat(ctx, snapshot, attempts, views)
	together(p, attempts, views)
	for rest := attempts; len(rest) > 0; rest = rest[min(len(rest), atATime):] {
		part := rest[:min(len(rest), atATime)]
		a.lookAgain(ctx, snapshot, p, part, views)
		a.createAll(ctx, snapshot, p, part)
	}
	a.seatAgain(ctx, snapshot, p, attempts, views)
	var out Outcome
	var failures []error
	for _, t := range attempts {
		switch {
		case t.err != nil:
			if t.open {
				out.Open++
			}
			a.decided(p, t.launch, Failed, "", "the API server could not be told")
			failures = append(failures, fmt.Errorf("creating a NodeClaim of pool %s: %w", t.launch.Pool, t.err))
		case t.refusal != "":
			a.decided(p, t.launch, NotHeld, "", t.refusal)
			out.Refused = append(out.Refused, Refused{Pool: t.launch.Pool, Why: t.refusal, Pods: t.launch.Pods,
				For: t.launch.For, Denied: t.denied})
			if t.denied && len(t.launch.Replaces) > 0 { // who replaces nodes has no brake of its own
				failures = append(failures, fmt.Errorf("creating a NodeClaim of pool %s: %s", t.launch.Pool,
					t.refusal))
			}
		default:
			out.Launched = append(out.Launched, Launched{Claim: t.claim.Name, Pool: t.launch.Pool,
				Pods: t.launch.Pods, For: t.launch.For})
		}
	}
	return out, errors.Join(failures...)
}

// createAll creates the claims of those launches that still hold.
func (a *Applier) createAll(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan, attempts []attempt) {
	a.config.Each(len(attempts), func(i int) {
		t := &attempts[i]
		if t.refusal != "" || t.err != nil {
			return
		}
		t.claim, t.refusal, t.err = a.createInTime(ctx, snapshot, p, t)
		switch {
		case t.err != nil && denies(t.err):
			t.refusal, t.err, t.denied = t.err.Error(), nil, true
		case t.refusal == "" && t.err == nil:
			a.promise(*t) // at once: its node may open before the plan's last claim is created
		}
	})
}

// together counts the claims that are alike, so that a cloud can launch them in one call and knows how many to wait
// for. It also counts launches that fail later: waiting for those is short.
func together(p plan.Plan, attempts []attempt, views map[string]*view) {
	claims, seed := make([]*karpenterv1.NodeClaim, len(attempts)), sha256.New()
	for i, t := range attempts {
		if t.refusal != "" || t.err != nil {
			continue
		}
		claims[i] = translate.NodeClaimFor(views[t.launch.Pool].pool, p.Names, t.launch, "")
		fmt.Fprintln(seed, t.launch.PoolUID, purpose(t.launch), t.ordinal)
	}
	companies, err := translate.Companies(claims, hex.EncodeToString(seed.Sum(nil)))
	if err != nil {
		return // not known; clouds then wait as usual
	}
	for i := range attempts {
		attempts[i].company = companies[i]
	}
}

// lookAgain refreshes views that are too old, and checks the remaining launches against them. Since the plan began, a
// limit may have been set or the pool recreated (L-14).
func (a *Applier) lookAgain(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan, attempts []attempt,
	views map[string]*view) {
	for i := range attempts {
		t := &attempts[i]
		if t.refusal != "" || t.err != nil {
			continue
		}
		name := t.launch.Pool
		if a.config.Now().Sub(views[name].at) > youngFor {
			views[name] = a.look(ctx, snapshot, t.launch)
		}
		t.view = views[name]
		if t.err = t.view.err; t.err == nil {
			t.refusal = t.view.objection(p, t.launch)
		}
	}
}

func (a *Applier) promise(t attempt) {
	a.config.Store.Promise(t.claim, t.launch.Reserve, t.launch.Pods)
	a.config.Log.Info("created NodeClaim", "event", "NodeClaimCreated", "decision", t.decision, "claim", t.claim.Name,
		"pool", t.launch.Pool, "pods", len(t.launch.Pods), "types", len(t.launch.Types), "cheapest",
		t.launch.Cheapest.Type, "zone", t.launch.Cheapest.Zone,
		"capacityType", t.launch.Cheapest.CapacityType, "pricePerHour", t.launch.Cheapest.Price.String())
}

// check checks whether the launch still holds. Its pool must be the one the plan saw, and its slot must be usable. The
// limits must have room, counting everything created since the snapshot (L-13). used and ceiling add up what the
// launches before it will take.
func (a *Applier) check(snapshot *cluster.Snapshot, p plan.Plan, launch plan.Launch, v *view,
	used map[string]limit.Usage, ceiling *limit.Ceiling) attempt {
	t := attempt{launch: launch, err: v.err}
	if t.err != nil {
		return t
	}
	if t.refusal = v.objection(p, launch); t.refusal != "" {
		return t
	}
	pool := snapshot.Pool(launch.Pool)
	if _, counted := used[launch.Pool]; !counted {
		used[launch.Pool] = a.config.Store.Usage(launch.Pool)
	}
	// Replacements may exceed soft limits until the old nodes are gone (L-31). Slots enforce the hard limit.
	if exceeded, ok := pool.Limits.Check(used[launch.Pool], launch.Reserve); !ok &&
		(len(launch.Replaces) == 0 || exceeded.Hard) {
		t.refusal = exceeded.Text(p.Names)
		return t
	}
	// The same holds for the limits of the whole cluster (K-53).
	if full, hard := ceiling.Full(); hard || full && len(launch.Replaces) == 0 {
		t.refusal = ceiling.Text()
		return t
	}
	*ceiling = ceiling.Plus(1)
	used[launch.Pool] = used[launch.Pool].Plus(1, launch.Reserve)
	return t
}

// createInTime creates the claim only while its view is young enough.
func (a *Applier) createInTime(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan,
	t *attempt) (*karpenterv1.NodeClaim, string, error) {
	left := viewFor - a.config.Now().Sub(t.view.at)
	if left <= 0 {
		return nil, "the pool was looked at too long ago", nil
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if t.view.shared != nil {
		return a.createSeated(ctx, snapshot, p, t)
	}
	return a.create(ctx, snapshot, p, t)
}

// create tries the names of the launch until one is free, or belongs to this same launch, created before.
func (a *Applier) create(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan,
	t *attempt) (*karpenterv1.NodeClaim, string, error) {
	launch := t.launch
	name, tried := "", 0
	for attempt := 0; tried < maxAttempts; attempt++ {
		name = claimName(launch, t.ordinal, attempt)
		if known := claimNode(snapshot, name); known != nil {
			if launch.Slot != plan.NoSlot {
				return nil, fmt.Sprintf("slot %d is taken by NodeClaim %s", launch.Slot, name), nil
			}
			// A claim that once replaced the same claims and was released since serves another purpose by now.
			retired := !slices.Equal(known.Replaces, launch.Replaces)
			forRoom := len(launch.Pods)+len(launch.Replaces) == 0
			if snapshot.Version != p.BasedOn && !known.Deleting && !retired && !forRoom {
				return nil, fmt.Sprintf("NodeClaim %s for the same pods appeared meanwhile", name), nil
			}
			// The plan knew of it and asks for another one. Buffers do so each time pods have taken their room (K-37),
			// so for them the name proves nothing.
			if !forRoom {
				tried++
			}
			continue
		}
		tried++
		if holder := t.view.named[name]; holder != nil {
			return holder, "", nil // the same launch, see objection
		}
		claim := a.claimFor(p, t, launch, name)
		mine, other, err := a.createOrFind(ctx, p, t, claim, sameLaunch)
		if mine != nil || err != nil {
			return mine, "", err
		}
		if launch.Slot != plan.NoSlot {
			if other == nil {
				return nil, fmt.Sprintf("slot %d was taken by NodeClaim %s a moment ago", launch.Slot, name), nil
			}
			return nil, taken(launch, other), nil
		}
	}
	return nil, "", fmt.Errorf("%d names for the same pods are in use; the last is %s", maxAttempts, name)
}

// claimFor returns the claim to create for a launch, under that name.
func (a *Applier) claimFor(p plan.Plan, t *attempt, launch plan.Launch, name string) *karpenterv1.NodeClaim {
	claim := translate.NodeClaimFor(t.view.pool, p.Names, launch, name)
	translate.SetCompany(claim, t.company)
	price, capacity := a.config.Store.Overlaid(claim.Spec.NodeClassRef, launch.Pool, launch.Types)
	translate.SetOverlaid(claim, price, capacity)
	return claim
}

// createOrFind creates the claim of the launch. mine is the claim that stands for the launch: the new one, or an
// existing one of that name which same accepts. Otherwise other is the claim that has the name, or nil if it just went
// away.
func (a *Applier) createOrFind(ctx context.Context, p plan.Plan, t *attempt, claim *karpenterv1.NodeClaim,
	same func(found, claim *karpenterv1.NodeClaim) bool) (mine, other *karpenterv1.NodeClaim, err error) {
	if err = a.createOnce(ctx, claim, t.view.at.Add(viewFor)); err == nil {
		t.decision = a.decided(p, t.launch, Done, claim.Name, "")
		return claim, nil, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		t.open = mayHaveLanded(err)
		return nil, nil, err
	}
	found, err := a.existing(ctx, claim)
	t.open = err != nil
	if found != nil && same(found, claim) {
		return found, nil, nil
	}
	return nil, found, err
}

// createOnce creates the claim. It tries once more under the same name if the first answer may have been lost. It
// sends nothing after until. On success, claim is what the API server returned.
func (a *Applier) createOnce(ctx context.Context, claim *karpenterv1.NodeClaim, until time.Time) error {
	const tries = 2 // one lost answer is common, two in a row are an outage: the next round asks again
	err := errors.New("the pool was looked at too long ago")
	for range tries {
		if !a.config.Now().Before(until) {
			return err
		}
		fresh := claim.DeepCopy()
		if err = a.config.Client.Create(ctx, fresh); err == nil {
			*claim = *fresh
			return nil
		}
		if !mayHaveLanded(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// mayHaveLanded reports whether the object may exist although the create failed. Only a refusal by the API server
// itself rules that out.
func mayHaveLanded(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.IsUnexpectedServerError(err) || apierrors.IsServiceUnavailable(err)
}

// denies reports whether an error is the API server's answer to this very claim: the next pool's may be accepted. A
// lack of a right of ours is none, since it is the same for all. The API server tells it by its text only.
func denies(err error) bool {
	if apierrors.IsForbidden(err) {
		return !strings.Contains(err.Error(), `cannot create resource "`) &&
			!strings.Contains(err.Error(), "cannot set blockOwnerDeletion")
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// existing returns the claim that has the same name as ours, or nil if it is gone.
func (a *Applier) existing(ctx context.Context, ours *karpenterv1.NodeClaim) (*karpenterv1.NodeClaim, error) {
	var found karpenterv1.NodeClaim
	if err := a.config.Live.Get(ctx, client.ObjectKeyFromObject(ours), &found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &found, nil
}

func claimNode(snapshot *cluster.Snapshot, name string) *cluster.Node {
	for _, node := range snapshot.Nodes {
		if node.Claim == name {
			return node
		}
	}
	return nil
}

// claimName names the claim of a launch. In a pool with slots it is the slot's name (L-14). Otherwise it is the pool's
// name and a hash of the purpose, so the same plan made twice creates one claim (P-32).
func claimName(launch plan.Launch, ordinal, attempt int) string {
	if launch.Slot != plan.NoSlot {
		return limit.SlotName(launch.Pool, launch.PoolUID, launch.Slot)
	}
	text := fmt.Sprintf("%s\n%d\n%s", launch.PoolUID, attempt, purpose(launch))
	if ordinal > 0 {
		text += fmt.Sprintf("\n%d", ordinal)
	}
	sum := sha256.Sum256([]byte(text))
	return launch.Pool + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// purpose says what a launch is for: its pods, the claims it replaces, or the buffer pods it has room for.
func purpose(launch plan.Launch) string {
	uids := make([]string, len(launch.Pods))
	for i, pod := range launch.Pods {
		uids[i] = pod.UID
	}
	slices.Sort(uids)
	text := strings.Join(uids, "\n")
	if len(uids) == 0 {
		for _, pod := range launch.Buffers {
			text += "\nroom for " + pod.UID
		}
		if slices.Contains(launch.For, plan.AskFloor) {
			text += "\n" + plan.AskFloor
		}
	}
	if len(launch.Replaces) > 0 {
		text += "\nreplaces " + strings.Join(launch.Replaces, ",")
	}
	return text
}
