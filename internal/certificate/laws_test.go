package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

const day = 24 * time.Hour

func terms() Terms {
	return Terms{Name: "test", Hosts: []string{"hook.space.svc", "127.0.0.1"}, Lifetime: Lifetime}
}

func began() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// shared is a Secret in memory; board is a target in memory. meanwhile is called before and after every access.
type shared struct {
	data      map[string][]byte
	version   int
	meanwhile func()
}

func (s *shared) Read(context.Context) (Stored, error) {
	s.meanwhile()
	version, data := s.version, maps.Clone(s.data)
	s.meanwhile()
	return Stored{Data: data, Write: func(_ context.Context, data map[string][]byte) error {
		s.meanwhile()
		if s.version != version {
			return ErrConflict
		}
		s.version, s.data = s.version+1, maps.Clone(data)
		s.meanwhile()
		return nil
	}}, nil
}

type board struct {
	bundle    []byte
	version   int
	missing   bool
	meanwhile func()
}

func (b *board) Read(context.Context) (Held, error) {
	b.meanwhile()
	if b.missing {
		return Held{}, ErrMissing
	}
	version, bundle := b.version, b.bundle
	b.meanwhile()
	return Held{Bundles: [][]byte{bundle}, Write: func(_ context.Context, trust Trust) error {
		b.meanwhile()
		if b.version != version {
			return ErrConflict
		}
		b.version, b.bundle = b.version+1, trust.Bundle
		b.meanwhile()
		return nil
	}}, nil
}

// fleet is some replicas with a clock that the test moves.
type fleet struct {
	t        *testing.T
	now      time.Time
	secret   *shared
	boards   []*board
	replicas []*Keeper
	stepped  []time.Time // when each began its last step
	chance   *rand.Rand
	depth    int  // how many replicas are in the middle of a step
	alone    bool // nothing happens meanwhile, and the test looks for itself
	changes  map[Change]int
	verified map[string]error // signatures that were checked before
}

func newFleet(t *testing.T, seed uint64, replicas int) *fleet {
	f := &fleet{t: t, now: began(), changes: map[Change]int{}, verified: map[string]error{},
		chance: rand.New(rand.NewPCG(seed, 1)), stepped: make([]time.Time, replicas)}
	f.secret = &shared{meanwhile: f.meanwhile}
	f.boards = []*board{{meanwhile: f.meanwhile}, {meanwhile: f.meanwhile}}
	for range replicas {
		keeper, err := NewKeeper(Config{Terms: terms(), Store: f.secret, Targets: []Target{f.boards[0], f.boards[1]}})
		if err != nil {
			t.Fatal(err)
		}
		f.replicas = append(f.replicas, keeper)
	}
	return f
}

// meanwhile is what happens between two accesses of a replica: nothing, time passes, or another replica makes whole
// steps. Each depth has its own replica, since none is in two steps at once.
func (f *fleet) meanwhile() {
	if f.alone {
		return
	}
	f.check()
	if f.depth >= len(f.replicas) || f.chance.IntN(24) > 0 {
		return
	}
	f.now = f.now.Add(time.Duration(f.chance.Int64N(int64(10 * time.Minute))))
	for range f.chance.IntN(4) {
		f.step()
	}
}

// step lets the replica at this depth make one.
func (f *fleet) step() {
	i := f.depth
	f.depth++
	change, err := f.replicas[i].Step(f.t.Context(), f.now)
	if err != nil {
		f.t.Errorf("replica %d: %v", i, err)
	}
	f.changes[change]++
	f.stepped[i] = f.now
	f.depth--
	f.check()
}

// check is the law: a ready replica serves only what clients of the targets trust. It is also valid, unless the
// replica has not stepped for longer than the rest of a certificate's lifetime at its renewal.
func (f *fleet) check() {
	f.t.Helper()
	for i, keeper := range f.replicas {
		if !keeper.Ready() {
			continue
		}
		served, err := keeper.GetCertificate(nil)
		if err != nil {
			f.t.Fatal(err)
		}
		if !usable(served.Leaf, f.now) {
			if f.now.Sub(f.stepped[i]) < 20*day {
				f.t.Fatalf("at %s replica %d, which looked at %s, serves what ended at %s", f.now, i, f.stepped[i],
					served.Leaf.NotAfter)
			}
			continue
		}
		for j, b := range f.boards {
			key := string(b.bundle) + string(served.Leaf.Raw)
			if _, known := f.verified[key]; !known {
				f.verified[key] = trusts(b.bundle, served, f.now)
			}
			if err := f.verified[key]; err != nil {
				f.t.Fatalf("at %s replica %d, which looked at %s, serves what target %d does not trust: %v", f.now, i,
					f.stepped[i], j, err)
			}
		}
	}
}

func trusts(bundle []byte, served *tls.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle is empty")
	}
	_, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "hook.space.svc"})
	return err
}

// at every moment of a renewal, between any two accesses of any replica, clients with the published bundle trust
// what is served, even by replicas that sleep in the middle of a step, or for weeks.
func TestWhatIsServedIsAlwaysTrusted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		f := newFleet(t, seed, 4)
		end := began().Add(400 * day)
		for f.now.Before(end) {
			f.now = f.now.Add(time.Duration(f.chance.Int64N(int64(4 * day))))
			order := f.chance.Perm(len(f.replicas) - 1) // the last is behind: it is only asked now and then
			if f.chance.IntN(4) == 0 {
				order = append(order, len(f.replicas)-1)
			}
			f.shuffle(order)
		}
		if f.changes[Renewed] < 4 || f.changes[Replaced] > 0 || f.changes[Forgotten] == 0 || f.changes[Created] != 1 {
			t.Errorf("seed %d: changes %v, want at least 4 renewals without a hurry", seed, f.changes)
		}
		for i, keeper := range f.replicas {
			if !keeper.Ready() {
				t.Errorf("seed %d: replica %d is not ready at the end", seed, i)
			}
		}
	}
}

// shuffle steps replicas in an order, with others in the middle of it.
func (f *fleet) shuffle(order []int) {
	for _, i := range order {
		f.replicas[0], f.replicas[i] = f.replicas[i], f.replicas[0]
		f.stepped[0], f.stepped[i] = f.stepped[i], f.stepped[0]
		f.step()
		f.now = f.now.Add(time.Duration(f.chance.Int64N(int64(10 * time.Minute))))
	}
}

// the steps of a renewal, with what is published and served after each.
func TestARenewalPublishesBeforeItServes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	f.alone = true
	k := f.replicas[0]
	step := func(at time.Duration, want Change, authorities int, same bool) {
		t.Helper()
		before := k.served.Load()
		change, err := k.Step(t.Context(), began().Add(at))
		found, _ := parseBundle(f.boards[0].bundle)
		if err != nil || change != want || len(found) != authorities ||
			(before == nil || bytes.Equal(before.Certificate[0], k.served.Load().Certificate[0])) != same {
			t.Errorf("after %s: %q with %d authorities, served the same %t, %v; want %q with %d, %t", at, change,
				len(found), !same, err, want, authorities, same)
		}
	}
	step(0, Created, 1, true)
	step(59*day, "", 1, true)
	step(60*day, Prepared, 2, true)
	f.boards[1].missing = true
	if _, err := k.Step(t.Context(), began().Add(60*day+time.Hour)); !errors.Is(err, ErrMissing) || k.Ready() {
		t.Errorf("without its target: ready %t, %v", k.Ready(), err)
	}
	f.boards[1].missing = false
	step(61*day, Announced, 2, true)
	step(61*day+4*time.Minute, "", 2, true)
	f.boards[1].bundle = nil // somebody applies the manifest again: it is mended, and not served yet
	step(61*day+6*time.Minute, "", 2, true)
	step(61*day+7*time.Minute, Renewed, 2, false)
	step(91*day, Forgotten, 1, true)
	if _, next := k.known.data()[nextPrivateKeyKey]; next || !k.Ready() {
		t.Errorf("next pair left: %t, ready %t", next, k.Ready())
	}
}

// A webhook that was away for longer than its certificate lasts serves a new one at once.
func TestAnExpiredCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	f.alone = true
	k := f.replicas[0]
	for at, want := range []Change{Created, Replaced} {
		if change, err := k.Step(t.Context(), began().Add(time.Duration(at)*120*day)); err != nil || change != want ||
			!k.Ready() {
			t.Errorf("%q, %v, ready %t; want %q", change, err, k.Ready(), want)
		}
	}
	// New names are a renewal: those who call by the old ones are not cut off.
	k.config.Terms.Hosts = []string{"hook.space.svc", "127.0.0.1", "other.example.com"}
	if change, err := k.Step(t.Context(), began().Add(121*day)); err != nil || change != Prepared || k.Ready() {
		t.Errorf("%q, %v, ready %t", change, err, k.Ready())
	}
}

// A Secret that was deleted or spoilt is written again by a replica that knows it: what is served does not change.
func TestALostSecretIsWrittenAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	f.alone = true
	k := f.replicas[0]
	if _, err := k.Step(t.Context(), f.now); err != nil {
		t.Fatal(err)
	}
	served, written := k.served.Load(), f.secret.data
	for _, lost := range []map[string][]byte{nil, {}, {certificateKey: []byte("x")},
		{certificateKey: written[certificateKey], privateKeyKey: written[privateKeyKey]}} {
		f.secret.data = lost
		_, err := k.Step(t.Context(), f.now)
		if (err != nil) != (len(lost) > 0) || !bytes.Equal(f.secret.data[privateKeyKey], written[privateKeyKey]) ||
			k.served.Load().Leaf.Equal(served.Leaf) == false {
			t.Errorf("lost %d keys: %v", len(lost), err)
		}
	}
}

// A replica that falls asleep after it read the Secret, while another one goes through a whole renewal, does not put
// the old bundle back when it wakes.
func TestASleeperDoesNotPublishThePast(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2)
	f.alone = true
	awake, sleeper := f.replicas[0], f.replicas[1]
	step := func(k *Keeper, at time.Duration) Change {
		t.Helper()
		change, err := k.Step(t.Context(), began().Add(at))
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	step(awake, 0)
	step(sleeper, 0)
	var changes []Change
	reads := 0
	f.secret.meanwhile = func() {
		if reads++; reads == 2 { // the sleeper has read
			for _, at := range []time.Duration{60 * day, 60*day + time.Minute, 60*day + time.Hour} {
				changes = append(changes, step(awake, at))
			}
		}
	}
	step(sleeper, 60*day-time.Minute)
	if len(changes) != 3 || changes[2] != Renewed {
		t.Fatalf("meanwhile %q", changes)
	}
	for i, b := range f.boards {
		for j, k := range f.replicas {
			if err := trusts(b.bundle, k.served.Load(), began().Add(60*day+time.Hour)); err != nil {
				t.Errorf("target %d does not trust replica %d: %v", i, j, err)
			}
		}
	}
}
