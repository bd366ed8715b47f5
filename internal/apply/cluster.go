package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file implements the hard limit of the whole cluster (K-53). ADR 0023 describes the mechanism, its proof and its
// faults. The code uses its words: the table, cluster slots, places.

// TableName is the ConfigMap with the limit and the places of pools, in the controller's namespace.
const TableName = "joiner-cluster-limit"

// ClusterLimit is one process's view of the hard limit of the whole cluster. It is safe for concurrent use.
type ClusterLimit struct {
	most      int64
	namespace string

	mu    sync.Mutex
	begun bool  // this process has written its flag's limit, or need not
	last  int64 // the table's limit when it was last seen; 0 before that
	seen  time.Time
}

// lookEvery is how often the table is read while nothing is launched. Somebody may have raised the limit.
const lookEvery = 30 * time.Second

// NewClusterLimit returns a limit of most NodeClaims, with its table in that namespace. For 0 it returns nil: no
// limit.
func NewClusterLimit(most int64, namespace string) *ClusterLimit {
	if most == 0 {
		return nil
	}
	return &ClusterLimit{most: most, namespace: namespace}
}

// wanted returns the limit to write to the table, or 0 if the table's limit is right. A process raises it only once,
// at its start, so two with different flags do not take turns. It lowers it whenever it sees a higher one. has is 0
// when there is no table.
func (l *ClusterLimit) wanted(has int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case has == 0 && l.last != 0:
		return min(l.most, l.last)
	case has == 0, has > l.most, has < l.most && !l.begun:
		return l.most
	}
	return 0
}

// fresh reports whether the table was seen recently.
func (l *ClusterLimit) fresh(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun && now.Sub(l.seen) < lookEvery && !now.Before(l.seen)
}

// saw records the table's limit, and returns the limit that counts.
func (l *ClusterLimit) saw(most int64, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun, l.last, l.seen = true, most, now
	return min(l.most, most)
}

// changing is why nothing may be launched while others write the table.
const changing = "the hard limit of the whole cluster is being changed by others"

// lost records that the table could not be read, so it is read again each time.
func (l *ClusterLimit) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = time.Time{}
}

// table is the table as read, with the ConfigMap to write changes to.
type table struct {
	limit.Table
	object *corev1.ConfigMap
}

// table reads the table. If the limit in it is not the one this process wants, it writes the table and reads it again:
// a create must rest on a table that was read after the limit was set. refusal says why nothing may be launched.
func (a *Applier) table(ctx context.Context) (t table, refusal string, err error) {
	const tries = 3
	own := a.config.Cluster
	for range tries {
		t = table{object: &corev1.ConfigMap{}}
		key := client.ObjectKey{Namespace: own.namespace, Name: TableName}
		err = a.config.Live.Get(ctx, key, t.object)
		switch {
		case apierrors.IsNotFound(err):
			t.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		case apierrors.IsForbidden(err):
			return t, a.unknown(key, err, "let the controller read it"), nil
		case err != nil:
			return t, "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
		default:
			if t.Table, err = limit.ParseTable(t.object.Data); err != nil {
				return t, a.unknown(key, err, "delete it, and it is made anew"), nil
			}
		}
		most := own.wanted(t.Most)
		if most == 0 {
			a.config.Store.LimitClaims(own.saw(t.Most, a.config.Now()))
			return t, "", nil
		}
		t.Most = most
		if err = a.writeTable(ctx, t); err != nil && !changed(err) {
			return t, "", err
		}
		if err == nil {
			own.saw(most, a.config.Now())
		}
	}
	return t, changing, nil
}

// unknown tells the store that the table cannot be read, so that pods and pools report it. It returns the text.
func (a *Applier) unknown(key client.ObjectKey, err error, remedy string) string {
	text := fmt.Sprintf("the hard limit of the whole cluster is not known, ConfigMap %s cannot be read: %v; %s", key,
		err, remedy)
	a.config.Cluster.lost()
	if a.config.Store.ClaimsUnknown(text) {
		a.config.Log.Info("nothing is launched, since the limit of the cluster is not known", "reason", text)
	}
	return text
}

// Begin writes the limit of this process into the table, if necessary and not done yet. So the limit is in force
// before the first launch. Later it reads the table now and then and tells the store its limit, for plans to use. A
// table that cannot be read is also told to the store and is no error. Call it before each round.
func (a *Applier) Begin(ctx context.Context) error {
	if a.config.Cluster == nil || a.config.Cluster.fresh(a.config.Now()) {
		return nil
	}
	_, refusal, err := a.table(ctx)
	if err == nil && refusal == changing {
		err = errors.New(refusal)
	}
	return err
}

// writeTable replaces the table that was read, and no other version of it.
func (a *Applier) writeTable(ctx context.Context, t table) error {
	object := t.object.DeepCopy()
	object.Data = t.Data()
	var err error
	if object.ResourceVersion == "" {
		err = a.config.Client.Create(ctx, object)
	} else {
		err = a.config.Client.Update(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}

// changed reports whether a write was refused because the object has changed.
func changed(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// shared is the part of a view about a cluster with a hard limit.
type shared struct {
	table  table
	most   int64 // the limit that counts
	claims int64 // existing NodeClaims, of any program
	open   []int // the slots that the limit allows, ascending
	// Slots in which the view's pool may create a claim, best first: for pods, and for replacements.
	seats, surgeSeats []int
	launches          map[string]*karpenterv1.NodeClaim
	held              func(slot int) limit.Held
}

// shareOf returns a view's part about the whole cluster, from the table and the newer list of all claims.
func (v *view) shareOf(t table, most int64, pool, uid string) *shared {
	s := &shared{table: t, most: min(t.Most, most), claims: int64(len(v.named)),
		launches: map[string]*karpenterv1.NodeClaim{}}
	for _, claim := range v.named {
		if key := translate.LaunchKey(claim); key != "" {
			s.launches[key] = claim
		}
	}
	s.held = func(slot int) limit.Held {
		claim := v.named[limit.ClusterSlotName(slot)]
		switch {
		case claim == nil:
			return limit.Free
		case translate.Belongs(claim, pool, uid):
			return limit.ByPool
		}
		return limit.ByAnother
	}
	taken := func(slot int) bool { return s.held(slot) != limit.Free }
	s.open = limit.Usable(s.most, s.claims, taken, maxLaunches)
	s.seats = s.seatsOf(uid, v.slots, v.count)
	s.surgeSeats = s.seats
	if v.surgeSlots != v.slots {
		s.surgeSeats = s.seatsOf(uid, v.surgeSlots, v.count)
	}
	return s
}

// seatsOf lists the cluster slots in which a pool may create a claim, best first. The pool has n slots of its own and
// count claims. It may use those of its places that its limit allows. If n is [limit.None] it may use any slot, first
// those that are no pool's places.
func (s *shared) seatsOf(pool string, n, count int64) []int {
	if n == limit.None {
		return s.table.NobodysFirst(s.open)
	}
	places := limit.UsablePlaces(s.table.Places[pool], n, count, s.held)
	return slices.DeleteFunc(places, func(slot int) bool {
		_, open := slices.BinarySearch(s.open, slot)
		return !open
	})
}

// seat gives pools with slots of their own the places that these launches need. It writes the table at most once. Then
// it refreshes the views that rest on the old table.
func (a *Applier) seat(ctx context.Context, snapshot *cluster.Snapshot, attempts []attempt, views map[string]*view) {
	if a.config.Cluster == nil {
		return
	}
	wants, order := byPoolWithSlots(attempts, views)
	if len(order) == 0 {
		return
	}
	next, changes := views[order[0]].shared.table, false
	for _, pool := range order {
		v, list := views[pool], wants[pool]
		most := v.slots
		if slices.ContainsFunc(list, func(t *attempt) bool { return len(t.launch.Replaces) > 0 }) {
			most = v.surgeSlots
		}
		more, changed := next.WithPlaces(list[0].launch.PoolUID, most, v.count, len(list), v.shared.open,
			v.shared.held)
		next.Table, changes = more, changes || changed
	}
	if !changes {
		return
	}
	next.Table = next.Without(func(uid string) bool {
		return !slices.ContainsFunc(snapshot.Pools, func(p *cluster.Pool) bool { return p.UID == uid })
	})
	if err := a.writeTable(ctx, next); err != nil {
		for _, list := range wants {
			for _, t := range list {
				if t.err = err; changed(err) {
					t.err, t.refusal = nil, "the places of NodePools in the cluster were changed by others meanwhile"
				}
			}
		}
		return
	}
	for _, pool := range order {
		views[pool] = a.look(ctx, snapshot, wants[pool][0].launch)
	}
}

// seatAgain creates the claims of launches whose place a claim of another pool has taken, which this same plan made.
// Two pools may have the same places. Now that the claim stands there, the place is of no use to the other pool, so
// [limit.Table.WithPlaces] gives it another one. Before, it could not: a process with the older table might still use
// the place.
func (a *Applier) seatAgain(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan, attempts []attempt,
	views map[string]*view) {
	if !slices.ContainsFunc(attempts, func(t attempt) bool { return t.claim != nil }) {
		return
	}
	var rest []attempt
	var places []int // of rest in attempts
	looked := map[string]bool{}
	for i, t := range attempts {
		if pool := t.launch.Pool; t.seatless && t.view.slots != limit.None {
			if !looked[pool] {
				views[pool], looked[pool] = a.look(ctx, snapshot, t.launch), true
			}
			t.refusal = ""
			t.err = views[pool].err
			rest, places = append(rest, t), append(places, i)
		}
	}
	if len(rest) == 0 {
		return
	}
	a.seat(ctx, snapshot, rest, views)
	a.lookAgain(ctx, snapshot, p, rest, views)
	a.createAll(ctx, snapshot, p, rest)
	for i, t := range rest {
		attempts[places[i]] = t
	}
}

// byPoolWithSlots returns, by pool, the launches that still hold, for pools with slots of their own. order has these
// pools in the order of the launches.
func byPoolWithSlots(attempts []attempt, views map[string]*view) (wants map[string][]*attempt, order []string) {
	wants = map[string][]*attempt{}
	for i := range attempts {
		t := &attempts[i]
		pool := t.launch.Pool
		if t.refusal != "" || t.err != nil || views[pool].slots == limit.None {
			continue
		}
		if wants[pool] == nil {
			order = append(order, pool)
		}
		wants[pool] = append(wants[pool], t)
	}
	return wants, order
}

// seats are the cluster slots that one plan has used or tried. It is safe for concurrent use.
type seats struct {
	mu   sync.Mutex
	used map[int]bool
}

// next returns the first unused slot of the list, and marks it as used.
func (s *seats) next(list []int) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range list {
		if !s.used[slot] {
			s.used[slot] = true
			return slot, true
		}
	}
	return 0, false
}

// createSeated creates the claim of a launch in a cluster slot. An annotation says which launch it stands for: the
// name that the claim would have without slots. So the same plan made twice creates one claim (P-32).
func (a *Applier) createSeated(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan, t *attempt) (
	claim *karpenterv1.NodeClaim, refusal string, err error,
) {
	key, holder, refusal, err := t.standsFor(snapshot, p)
	if holder != nil || refusal != "" || err != nil {
		return holder, refusal, err
	}
	list := t.view.shared.seats
	if len(t.launch.Replaces) > 0 {
		list = t.view.shared.surgeSeats
	}
	for range maxAttempts {
		slot, free := t.seats.next(list)
		if t.seatless = !free; !free {
			return nil, t.view.noSeat(), nil
		}
		claim = a.claimFor(p, t, t.launch, limit.ClusterSlotName(slot))
		translate.SetLaunchKey(claim, key)
		if claim, _, err = a.createOrFind(ctx, p, t, claim, standsForSame); claim != nil || err != nil {
			return claim, "", err
		}
	}
	return nil, "slots of the cluster are being taken by others", nil
}

// standsForSame reports whether both claims stand for one launch.
func standsForSame(found, claim *karpenterv1.NodeClaim) bool {
	return translate.LaunchKey(found) == translate.LaunchKey(claim) && sameLaunch(found, claim)
}

// standsFor returns the key to write on a new claim of the launch, or the claim that already stands for the launch. A
// claim that the plan knew of does not count: the plan asks for another one. Names work the same way.
func (t *attempt) standsFor(snapshot *cluster.Snapshot, p plan.Plan) (
	key string, holder *karpenterv1.NodeClaim, refusal string, err error,
) {
	launch := t.launch
	launch.Slot = plan.NoSlot // the plan's slot numbers are used for counting only
	for attempt := range maxAttempts {
		key = claimName(launch, t.ordinal, attempt)
		holder = t.view.shared.launches[key]
		// replicas, and room for buffers, are all alike
		if holder == nil || len(launch.Pods)+len(launch.Replaces) == 0 {
			return key, nil, "", nil
		}
		known := claimNode(snapshot, holder.Name)
		switch {
		case known == nil || known.ClaimUID != string(holder.UID):
			if sameLaunch(holder, translate.NodeClaimFor(t.view.pool, p.Names, launch, holder.Name)) {
				return key, holder, "", nil
			}
		case snapshot.Version != p.BasedOn && !known.Deleting && slices.Equal(known.Replaces, launch.Replaces):
			return key, nil, fmt.Sprintf("NodeClaim %s for the same pods appeared meanwhile", holder.Name), nil
		}
	}
	return key, nil, "", fmt.Errorf("%d NodeClaims for the same pods exist; the last is %s", maxAttempts, holder.Name)
}

// noSeat says why no slot is left for a launch.
func (v *view) noSeat() string {
	s := v.shared
	if s.claims >= s.most {
		return limit.Ceiling{HardMost: s.most, Claims: s.claims}.Text()
	}
	text := fmt.Sprintf("no slot of the cluster is left: %d NodeClaims existed before this plan, %d are allowed",
		s.claims, s.most)
	if v.slots != limit.None {
		text += fmt.Sprintf("; of the NodePool %d, and %d", v.count, v.slots)
	}
	return text
}
