package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// tokens is the reaction of the model's EC2 to a repeated client token (E-37).
type tokens int

const (
	replay tokens = iota
	nothing
	mismatch
	ignore
	behaviours
)

// world is EC2 and the API server, as far as launches need them. Its time is that of the synctest bubble.
type world struct {
	mu       sync.Mutex
	source   *rand.Rand
	tokens   tokens
	healed   bool
	claims   []stored
	machines []*machine
	born     int // processes
	answers  map[launchid.ID][]*machine
	twice    []string // machines that two claims had
}

// stored is a claim with its version, and its states up to now: a process may read one of the last seconds'.
type stored struct {
	launchid.Claim
	version int
	states  []state
}

type state struct {
	launchid.Claim
	version int
	since   time.Time
}

// change writes a claim.
func (s *stored) change(do func(*launchid.Claim)) {
	do(&s.Claim)
	s.version++
	s.states = append(s.states, state{s.Claim, s.version, time.Now()})
}

type machine struct {
	launchid.Instance
	shown, ended time.Time
}

// roll is a number below n. What a process has on its way may still run when it has ended.
func (w *world) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.source.IntN(n)
}

// chance is for callers that hold w.mu.
func (w *world) chance(percent int) bool { return !w.healed && w.source.IntN(100) < percent }

// pause lets time pass, like a call.
func (w *world) pause(ctx context.Context, most time.Duration) error {
	w.mu.Lock()
	d := time.Duration(w.source.Int64N(int64(most)))
	w.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// process is a process of Joiner. After its crash all its calls fail; those on their way may still take effect.
type process struct {
	*world
	name string
	ctx  context.Context
	late time.Duration // how old what it reads may be
}

var errLost = errors.New("connection reset")

func (p process) Claims(ctx context.Context) ([]launchid.Claim, error) {
	if err := p.pause(ctx, 50*time.Millisecond); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]launchid.Claim, len(p.claims))
	for i := range p.claims {
		list[i] = p.read(i).Claim
	}
	return list, p.ctx.Err()
}

// read is a claim as the process sees it. w.mu is held.
func (p process) read(i int) state {
	seen := state{}
	for _, s := range p.claims[i].states {
		if seen.UID == "" || time.Since(s.since) >= p.late {
			seen = s
		}
	}
	return seen
}

// write writes a claim as the API server does it: only when test says yes, and some writes are refused.
func (p process) write(ctx context.Context, uid string, test func(*stored) bool,
	do func(*launchid.Claim)) (launchid.Claim, int, error) {
	if err := p.pause(ctx, 100*time.Millisecond); err != nil {
		return launchid.Claim{}, 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.claims[p.at(uid)]
	if p.ctx.Err() != nil || p.chance(5) || !test(s) {
		return launchid.Claim{}, 0, errors.New("conflict")
	}
	s.change(do)
	return s.Claim, s.version, nil
}

func (w *world) at(uid string) int {
	return slices.IndexFunc(w.claims, func(c stored) bool { return c.UID == uid })
}

// unchanged tests what both Intend and Mark test.
func unchanged(read launchid.Claim) func(*stored) bool {
	return func(s *stored) bool { return s.Launch == read.Launch && s.Dealer == read.Dealer }
}

func (p process) Intend(ctx context.Context, claim launchid.Claim, launch launchid.ID, mark string) error {
	is, _, err := p.write(ctx, claim.UID, unchanged(claim), func(c *launchid.Claim) {
		c.Launch, c.Dealer = launch,
			mark
	})
	if err == nil && is.ProviderID != "" {
		err = errors.New("it has a machine")
	}
	return err
}

func (p process) Mark(ctx context.Context, mark string,
	which func([]launchid.Claim) []launchid.Claim) ([]launchid.Claim, error) {
	p.mu.Lock()
	live := make([]launchid.Claim, len(p.claims))
	for i, s := range p.claims {
		live[i] = s.Claim
	}
	p.mu.Unlock()
	for _, claim := range which(slices.Clone(live)) {
		is, _, err := p.write(ctx, claim.UID, unchanged(claim), func(c *launchid.Claim) { c.Dealer = mark })
		if err != nil {
			return nil, err
		}
		live[slices.IndexFunc(live, func(c launchid.Claim) bool { return c.UID == claim.UID })] = is
	}
	return live, nil
}

func (p process) Fleet(ctx context.Context, _ string, ask launcher.Ask) (launcher.Answer, error) {
	if err := p.pause(ctx, time.Second); err != nil {
		return launcher.Answer{}, err
	}
	p.mu.Lock()
	if p.chance(10) { // never arrives
		p.mu.Unlock()
		return launcher.Answer{}, errLost
	}
	answer := p.answer(ask)
	lost := p.chance(15)
	p.mu.Unlock()
	if err := p.pause(ctx, time.Second); err != nil || lost || p.ctx.Err() != nil {
		return launcher.Answer{}, errLost
	}
	return answer, nil
}

func (p process) answer(ask launcher.Ask) launcher.Answer {
	known, again := p.answers[ask.Launch]
	switch {
	case again && p.tokens == nothing:
		return launcher.Answer{}
	case again && p.tokens == mismatch:
		return launcher.Answer{Refused: errors.New("IdempotentParameterMismatch")}
	case again && p.tokens == replay:
		return answerOf(known)
	}
	count := ask.Count
	var refused error
	if p.chance(20) {
		count, refused = p.source.IntN(count+1), errors.New("InsufficientInstanceCapacity")
	}
	var made []*machine
	for range count {
		late := time.Duration(0)
		if p.chance(30) {
			late = time.Duration(p.source.IntN(90)) * time.Second
		}
		m := &machine{Instance: launchid.Instance{ProviderID: fmt.Sprintf("i-%04d", len(p.machines)),
			Launch: ask.Launch, ClaimName: ask.Claim, Launched: time.Now()}, shown: time.Now().Add(late)}
		p.machines, made = append(p.machines, m), append(made, m)
	}
	p.answers[ask.Launch] = made
	answer := answerOf(made)
	answer.Refused = refused
	return answer
}

func answerOf(list []*machine) launcher.Answer {
	var answer launcher.Answer
	for _, m := range list {
		answer.Machines = append(answer.Machines, launchid.Instance{ProviderID: m.ProviderID, Launched: m.Launched})
	}
	return answer
}

func (p process) Of(ctx context.Context, launches []launchid.ID) ([]launchid.Instance, error) {
	if err := p.pause(ctx, 200*time.Millisecond); err != nil {
		return nil, err
	}
	return p.shown(func(m *machine) bool { return slices.Contains(launches, m.Launch) }), p.ctx.Err()
}

func (w *world) shown(is func(*machine) bool) []launchid.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []launchid.Instance
	for _, m := range w.machines {
		if m.ended.IsZero() && !time.Now().Before(m.shown) && is(m) {
			list = append(list, m.Instance)
		}
	}
	return list
}

// keep asks for a claim's machine until the claim has one, like a controller.
func (w *world) keep(p process, l *launcher.Launcher[string], uid string) {
	for p.ctx.Err() == nil {
		w.mu.Lock()
		claim := p.read(w.at(uid)).Claim
		w.mu.Unlock()
		if claim.ProviderID != "" {
			return
		}
		machine, err := l.Do(p.ctx, launcher.Order[string]{Claim: claim, Key: claim.Name[:1], Request: claim.Name[:1]})
		if err == nil {
			p.take(uid, machine)
		}
		_ = w.pause(p.ctx, 2*time.Second)
	}
}

// take writes a machine on a claim as the controller of claims does: first what stands behind the fence, then the
// machine, unless somebody has written the claim in between.
func (p process) take(uid string, m launcher.Machine) {
	fence := func(s *stored) bool { return m.Mark == "" || s.Dealer == m.Mark }
	is, version, err := p.write(p.ctx, uid, fence, func(*launchid.Claim) {})
	if err != nil || is.ProviderID != "" {
		return
	}
	_, _, _ = p.write(p.ctx, uid, func(s *stored) bool { return s.version == version }, func(c *launchid.Claim) {
		for _, other := range p.claims {
			if other.ProviderID == m.ProviderID {
				p.twice = append(p.twice, m.ProviderID)
			}
		}
		c.ProviderID = m.ProviderID
	})
}

// collect ends orphans, like the collector.
func (w *world) collect(p process, l *launcher.Launcher[string]) {
	for w.pause(p.ctx, 40*time.Second) == nil {
		owners, err := l.Whose(p.ctx, w.shown(func(*machine) bool { return true }))
		if err != nil {
			continue
		}
		w.mu.Lock()
		for _, m := range w.machines {
			if owners.Orphans[m.ProviderID] {
				m.ended = time.Now()
			}
		}
		w.mu.Unlock()
	}
}

// live runs a process until it crashes, or until the world is at rest.
func (w *world) live(lasts, late time.Duration) {
	ctx, crash := context.WithTimeout(context.Background(), lasts)
	defer crash()
	var group sync.WaitGroup
	w.mu.Lock()
	w.born++
	p := process{w, fmt.Sprint("p", w.born), ctx, late}
	claims := slices.Clone(w.claims)
	w.mu.Unlock()
	l := launcher.New[string](ctx, p.name, p, timer.Real{}, nil)
	for _, claim := range claims {
		group.Go(func() { w.keep(p, l, claim.UID) })
	}
	group.Go(func() { w.collect(p, l) })
	group.Wait()
}

// E-36 to E-38: with lost answers, late instances, crashes at any moment and any reaction of EC2 to tokens, each claim
// ends with a machine of its own, and no other machine is left.
func TestOneMachineForEachClaim(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{source: rand.New(rand.NewPCG(seed, 0)), tokens: tokens(seed % uint64(behaviours)),
				answers: map[launchid.ID][]*machine{}}
			for i := range 1 + w.source.IntN(30) {
				name := fmt.Sprintf("%c-%d", 'a'+w.source.IntN(3), i)
				claim := stored{}
				claim.change(func(c *launchid.Claim) { c.UID, c.Name = fmt.Sprintf("uid-%02d", i), name })
				w.claims = append(w.claims, claim)
			}
			var old sync.WaitGroup // processes that still believe that they lead
			for range w.roll(5) {
				lasts, late := time.Duration(w.roll(20_000))*time.Millisecond,
					time.Duration(w.roll(3_000))*time.Millisecond
				if w.roll(2) == 0 {
					old.Go(func() { w.live(lasts, late) })
					_ = w.pause(context.Background(), 5*time.Second)
					continue
				}
				w.live(lasts, late)
			}
			w.mu.Lock()
			w.healed = true
			w.mu.Unlock()
			w.live(20*time.Minute, time.Second)
			old.Wait()
			w.check(t, seed)
		})
	}
}

func (w *world) check(t *testing.T, seed uint64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	has := map[string]string{}
	for _, claim := range w.claims {
		if claim.ProviderID == "" || has[claim.ProviderID] != "" {
			t.Errorf("seed %d: claim %s has machine %q, which %q has too", seed, claim.UID, claim.ProviderID,
				has[claim.ProviderID])
		}
		has[claim.ProviderID] = claim.UID
	}
	for _, m := range w.machines {
		switch {
		case m.ended.IsZero() && has[m.ProviderID] == "":
			t.Errorf("seed %d: machine %s of launch %s runs and no claim has it", seed, m.ProviderID, m.Launch)
		case !m.ended.IsZero() && has[m.ProviderID] != "":
			t.Errorf("seed %d: machine %s of claim %s was ended", seed, m.ProviderID, has[m.ProviderID])
		}
	}
	if len(w.twice) > 0 {
		t.Errorf("seed %d: two claims had machines %v", seed, w.twice)
	}
}
