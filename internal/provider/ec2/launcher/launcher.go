// Package launcher launches one machine for each claim, whatever is lost on the way (E-29, E-36 to E-38). It gathers
// equal claims, writes each launch on its claims before it calls EC2, distributes the machines, and finds them again
// after a crash or a lost answer. Package launchid decides what to do then. [Ports] makes the calls.
package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// Ports are the launcher's access to claims and EC2. R is a request: what claims with one key ask of EC2.
type Ports[R any] interface {
	// Claims returns every claim of the provider, with or without a machine, from the cache.
	Claims(ctx context.Context) ([]launchid.Claim, error)
	// Intend writes a launch and the mark of this process on a claim, provided that the claim's launch and mark are as
	// read and that it has no machine. From then on every process can see the claim's launch.
	Intend(ctx context.Context, claim launchid.Claim, launch launchid.ID, mark string) error
	// Mark reads all claims from the API server itself and writes the mark on those that which chooses, provided that
	// their launch and mark are as read. It returns all claims, with the written marks. A claim that is gone is left
	// out; any other failure is an error.
	Mark(ctx context.Context, mark string, which func([]launchid.Claim) []launchid.Claim) ([]launchid.Claim, error)
	// Fleet asks EC2 for machines. An error means that the result is unknown.
	Fleet(ctx context.Context, request R, ask Ask) (Answer, error)
	// Of returns the machines of these launches that EC2 shows.
	Of(ctx context.Context, launches []launchid.ID) ([]launchid.Instance, error)
}

// Ask is one call for machines.
type Ask struct {
	Launch launchid.ID // token and tag
	Count  int
	// Claim is the name of the only claim, "" when there are several: their machines are assigned later.
	Claim string
	// NotAfter is until when the call may be sent, zero for no deadline. After it, the error is [provider.ErrExpired].
	NotAfter time.Time
}

// Answer is what EC2 said.
type Answer struct {
	Machines []launchid.Instance // with ProviderID and Launched; the rest is filled in
	// Refused says why there are fewer machines than requested; nil when there are not, or when EC2 does not say.
	Refused error
}

// Order is what a claim wants.
type Order[R any] struct {
	Claim launchid.Claim
	// Key is equal for claims whose requests are equal, byte for byte.
	Key     string
	Request R
	// NotAfter is until when the call may be made, zero for no deadline.
	NotAfter time.Time
	// With is the company in which the claim was created.
	With batch.Company
}

// Machine is the machine of a claim.
type Machine struct {
	ProviderID string
	// Mark is the value that the claim's annotation [launchid.DealerKey] must have when the machine is written on it,
	// tested in the same write; "" when no other claim can get the machine.
	Mark string
}

// Launcher launches machines. A restart loses its memory, which costs one more question to EC2 for each claim without
// a machine. Safe for concurrent use.
type Launcher[R any] struct {
	ports    Ports[R]
	clock    timer.Clock
	self     string
	launches *batch.Gatherer[Order[R], string]
	searches *batch.Gatherer[Order[R], found]

	mu sync.Mutex
	memory
}

// found is the result of a search for a claim's machine.
type found struct {
	providerID string
	anew       bool // there is none and never will be: launch again
}

// intents is how many claims are written concurrently.
const intents = 16

// New returns a launcher. Calls for several claims use ctx, which ends with the process. self is a name of the process
// that no other process ever has. gathered is called with the number of claims of a launch, and how long the first of
// them had waited; may be nil.
func New[R any](ctx context.Context, self string, ports Ports[R], clock timer.Clock,
	gathered func(asks int, waited time.Duration),
) *Launcher[R] {
	l := &Launcher[R]{ports: ports, clock: clock, self: self, memory: newMemory()}
	byUID := func(a, b Order[R]) int { return cmp.Compare(a.Claim.UID, b.Claim.UID) }
	l.launches = batch.New(ctx, batch.Config[Order[R], string]{Clock: clock, Window: batch.Launches(), Compare: byUID,
		Call: l.launch, Told: gathered})
	l.searches = batch.New(ctx, batch.Config[Order[R], found]{Clock: clock, Window: batch.Launches(), Compare: byUID,
		Call: l.search})
	return l
}

// Do returns the claim's machine. Calling again is always right. After an error that is not one of package provider,
// it is the only way to learn the result.
func (l *Launcher[R]) Do(ctx context.Context, order Order[R]) (Machine, error) {
	if order.Claim.ProviderID != "" {
		return Machine{ProviderID: order.Claim.ProviderID}, nil
	}
	machine, launch, mark, over := l.recall(order.Claim)
	if machine.ProviderID != "" {
		return machine, nil
	}
	read := order.Claim
	order.Claim.Launch, order.Claim.Dealer = launch, mark
	if launch != "" && !over {
		was, err := l.searches.Do(ctx, "", order)
		if err != nil || !was.anew {
			return l.dealtTo(read, was.providerID, err)
		}
	}
	if launch != "" { // it was tried before, and the rest of its company has had its turn
		order.With = batch.Company{}
	}
	providerID, err := l.launches.DoWith(ctx, order.Key, order, order.With)
	return l.dealtTo(read, providerID, err)
}

// dealtTo returns a machine that was just handed out, unless its launch was taken over since.
func (l *Launcher[R]) dealtTo(claim launchid.Claim, providerID string, err error) (Machine, error) {
	if err != nil {
		return Machine{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	machine := l.machineOf(claim)
	if machine.ProviderID != providerID {
		return Machine{}, fmt.Errorf("NodeClaim %s: %w", claim.Name, ErrLooking)
	}
	return machine, nil
}

// Known returns the machine that this process has for a claim, without a call; the zero value for none.
func (l *Launcher[R]) Known(claim launchid.Claim) Machine {
	machine, _, _, _ := l.recall(claim)
	return machine
}

func (l *Launcher[R]) recall(claim launchid.Claim) (machine Machine, launch launchid.ID, mark string, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkMark(claim)
	launch = l.launchOf(claim)
	return l.machineOf(claim), launch, l.bears(claim), l.over[launch]
}

// launch makes one call for equal claims.
func (l *Launcher[R]) launch(ctx context.Context, _ string, orders []Order[R]) []batch.Answer[string] {
	answers := make([]batch.Answer[string], len(orders))
	left := make([]int, 0, len(orders))
	for i, order := range orders {
		if l.expired(order) {
			answers[i].Err = fmt.Errorf("launching NodeClaim %s: %w", order.Claim.Name, provider.ErrExpired)
			continue
		}
		left = append(left, i)
	}
	id, left := l.intend(ctx, orders, left, answers)
	if len(left) == 0 {
		return answers
	}
	defer l.busy(id, false)
	ask := Ask{Launch: id, Count: len(left)}
	if ask.Count == 1 {
		ask.Claim = orders[left[0]].Claim.Name
	}
	for _, i := range left {
		if until := orders[i].NotAfter; ask.NotAfter.IsZero() || !until.IsZero() && until.Before(ask.NotAfter) {
			ask.NotAfter = until
		}
	}
	answer, err := l.ports.Fleet(ctx, orders[left[0]].Request, ask)
	if errors.Is(err, provider.ErrExpired) { // it took too long to get here, and nothing was asked for
		answer, err = Answer{Refused: err}, nil
	}
	if err != nil {
		for _, i := range left {
			answers[i].Err = fmt.Errorf("what came of launch %s is not known; it will be looked for: %w", id, err)
		}
		return answers
	}
	dealt, _ := batch.Deal(len(left), answer.Machines, earlier, refusedFor(id, answer))
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mayDeal(id) { // another process has taken over during the call
		for _, i := range left {
			answers[i].Err = fmt.Errorf("launch %s of NodeClaim %s: %w", id, orders[i].Claim.Name, ErrLooking)
		}
		return answers
	}
	l.over[id] = true
	for n, i := range left {
		answers[i] = batch.Answer[string]{Value: dealt[n].Value.ProviderID, Err: dealt[n].Err}
		if dealt[n].Err == nil {
			l.deal(orders[i].Claim.UID, id, dealt[n].Value.ProviderID, l.clock.Now())
		}
	}
	return answers
}

func refusedFor(id launchid.ID, answer Answer) error {
	if answer.Refused != nil {
		return answer.Refused
	}
	return fmt.Errorf("launch %s brought %d machines and does not say why there are no more", id, len(answer.Machines))
}

func (l *Launcher[R]) expired(order Order[R]) bool {
	return !order.NotAfter.IsZero() && l.clock.Now().After(order.NotAfter)
}

// intend writes a launch on the claims of a call, and returns its id with the remaining claims. left has positions
// among the orders. A claim that cannot be written drops out, with its error in answers. Since the id depends on the
// remaining claims, these are then written once more.
func (l *Launcher[R]) intend(ctx context.Context, orders []Order[R], left []int,
	answers []batch.Answer[string]) (launchid.ID, []int) {
	for len(left) > 0 {
		var uids []string
		var before []launchid.ID
		for _, i := range left {
			uids, before = append(uids, orders[i].Claim.UID), append(before, orders[i].Claim.Launch)
		}
		id, mark := launchid.New(uids, launchid.NextRound(before)), l.mark()
		l.busy(id, true)
		l.write(ctx, orders, left, answers, id, mark)
		staying := slices.DeleteFunc(slices.Clone(left), func(i int) bool { return answers[i].Err != nil })
		if len(staying) == len(left) {
			l.hold(id)
			return id, left
		}
		l.busy(id, false)
		for _, i := range staying { // a further round for those that stay
			orders[i].Claim.Launch, orders[i].Claim.Dealer = id, mark
		}
		left = staying
	}
	return "", nil
}

func (l *Launcher[R]) write(ctx context.Context, orders []Order[R], left []int, answers []batch.Answer[string],
	id launchid.ID, mark string,
) {
	timer.Each(l.clock, intents, len(left), func(n int) {
		claim := orders[left[n]].Claim
		if err := l.ports.Intend(ctx, claim, id, mark); err != nil {
			answers[left[n]].Err = fmt.Errorf("writing launch %s on NodeClaim %s: %w", id, claim.Name, err)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.intended[claim.UID] = id
		l.wrote(mark, claim)
	})
}

// ErrLooking means that a machine of the claim's launch may still appear in EC2.
var ErrLooking = errors.New("the machine is still being looked for")

// search finds the results of the launches of claims.
func (l *Launcher[R]) search(ctx context.Context, _ string, orders []Order[R]) []batch.Answer[found] {
	answers := make([]batch.Answer[found], len(orders))
	fail := func(err error) []batch.Answer[found] {
		for i := range answers {
			answers[i].Err = err
		}
		return answers
	}
	claims, err := l.ports.Claims(ctx)
	if err != nil {
		return fail(fmt.Errorf("looking for claims without a machine: %w", err))
	}
	byLaunch := map[launchid.ID]Order[R]{}
	for _, order := range orders {
		if known, again := byLaunch[order.Claim.Launch]; !again || l.expired(known) {
			byLaunch[order.Claim.Launch] = order
		}
	}
	launches := sortedKeys(byLaunch)
	machines, err := l.ports.Of(ctx, launches)
	if err != nil {
		return fail(fmt.Errorf("looking for machines of %d launches: %w", len(launches), err))
	}
	claims = withOrders(claims, orders)
	unknown := map[launchid.ID]error{}
	for _, repeat := range l.repeats(claims, machines) {
		order, asked := byLaunch[repeat.Launch]
		switch {
		case !asked:
		case l.expired(order):
			unknown[repeat.Launch] = fmt.Errorf("launching NodeClaim %s: %w", order.Claim.Name, provider.ErrExpired)
		default:
			came, err := l.repeat(ctx, order, repeat)
			unknown[repeat.Launch], machines = err, append(machines, came...)
		}
	}
	claims, err = l.takeOverFor(ctx, claims, machines, launches)
	if err != nil {
		return fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	plan := l.plan(claims, machines) // under the same lock as dealOut: another search may see the same machines
	l.dealOut(claims, plan.Take, func(launchid.Claim) bool { return true })
	for i, order := range orders {
		claim := order.Claim
		switch {
		case l.dealt[claim.UID].providerID != "":
			answers[i].Value.providerID = l.dealt[claim.UID].providerID
		case unknown[claim.Launch] != nil:
			answers[i].Err = unknown[claim.Launch]
		case slices.Contains(plan.Anew, claim.UID):
			l.over[claim.Launch] = true
			answers[i].Value.anew = true
		default:
			answers[i].Err = fmt.Errorf("launch %s of NodeClaim %s: %w", claim.Launch, claim.Name, ErrLooking)
		}
	}
	return answers
}

// repeat makes the call of a launch once more, and returns the machines of the answer.
func (l *Launcher[R]) repeat(ctx context.Context, order Order[R],
	repeat launchid.Repeat) ([]launchid.Instance, error) {
	ask := Ask{Launch: repeat.Launch, Count: repeat.Count, NotAfter: order.NotAfter}
	if repeat.Count == 1 {
		ask.Claim = order.Claim.Name
	}
	answer, err := l.ports.Fleet(ctx, order.Request, ask)
	if err != nil {
		return nil, fmt.Errorf("what came of launch %s is not known; it will be looked for: %w", repeat.Launch, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	try := l.tries[repeat.Launch]
	try.Repeated = l.clock.Now()
	l.tries[repeat.Launch] = try
	for i := range answer.Machines {
		answer.Machines[i].Launch = repeat.Launch
	}
	return answer.Machines, nil
}

// withOrders adds claims of orders that the cache does not have yet.
func withOrders[R any](claims []launchid.Claim, orders []Order[R]) []launchid.Claim {
	claims = slices.Clone(claims)
	for _, order := range orders {
		if !slices.ContainsFunc(claims, func(c launchid.Claim) bool { return c.UID == order.Claim.UID }) {
			claims = append(claims, order.Claim)
		}
	}
	return claims
}

// repeats returns the launches to call again.
func (l *Launcher[R]) repeats(claims []launchid.Claim, machines []launchid.Instance) []launchid.Repeat {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plan(claims, machines).Repeat
}

// plan returns what to do, by what was read and what this process knows. l.mu is held.
func (l *Launcher[R]) plan(claims []launchid.Claim, machines []launchid.Instance) launchid.Plan {
	claims, machines = l.with(claims, machines)
	return launchid.Recover(claims, machines, l.tries, l.clock.Now())
}

// Owners says which claims machines belong to, by provider ID.
type Owners struct {
	// Claims has the UID of the claim that a machine belongs to, or may belong to later.
	Claims map[string]string
	// Orphans are the machines that nobody will ever want (E-37). A machine in neither map is too young to tell.
	Orphans map[string]bool
	// Marks has the mark that a claim needs to name a machine, as in [Machine].Mark; "" if nobody has handed the
	// machine out yet. A machine that is not in it cannot belong to another claim.
	Marks map[string]string
}

// Whose returns the owners of these machines of the cluster.
func (l *Launcher[R]) Whose(ctx context.Context, machines []launchid.Instance) (Owners, error) {
	claims, err := l.ports.Claims(ctx)
	if err != nil {
		return Owners{}, fmt.Errorf("looking for the claims of %d machines: %w", len(machines), err)
	}
	going := func(claim launchid.Claim) bool { return claim.Deleting && claim.ProviderID == "" }
	// after an error: with the next listing
	if now, err := l.takeOverFor(ctx, claims, machines, l.launchesOf(claims, going)); err == nil {
		claims = now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.prune(claims, now)
	l.dealOut(claims, l.plan(claims, machines).Take, going) // nobody else asks for it any more
	claims, machines = l.with(claims, machines)
	owners := whose(claims, machines, l.tries, now)
	owners.Marks = l.marksOf(claims, machines, owners)
	return owners, nil
}

func (l *Launcher[R]) launchesOf(claims []launchid.Claim, which func(launchid.Claim) bool) []launchid.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var launches []launchid.ID
	for _, claim := range claims {
		if which(claim) {
			launches = append(launches, l.launchOf(claim))
		}
	}
	return launches
}

func (l *Launcher[R]) busy(id launchid.ID, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	try := l.tries[id]
	try.Busy = is
	l.tries[id] = try
}

// earlier orders machines of one launch by id: EC2's own order is not known.
func earlier(a, b launchid.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) }
