package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

var (
	// ErrConflict says that somebody else has written the object since it was read.
	ErrConflict = errors.New("it was changed meanwhile")
	// ErrMissing says that an object does not exist.
	ErrMissing = errors.New("it does not exist")
)

// Stored is the Secret as read.
type Stored struct {
	// Data is its content; empty if there is no Secret.
	Data map[string][]byte
	// Write replaces the content, or creates the Secret. It fails with ErrConflict if the Secret has changed since it
	// was read.
	Write func(context.Context, map[string][]byte) error
}

// Store is the Secret that replicas share. Read never returns stale content.
type Store interface {
	Read(context.Context) (Stored, error)
}

// Held is what a target holds.
type Held struct {
	// Bundles are the caBundles, one for each place of the object that has one.
	Bundles [][]byte
	// Paths are the paths by which the API server calls, one for each bundle; nil if they are not kept.
	Paths []string
	// Write writes the trust to every place. It fails with ErrConflict if the object has changed since it was read.
	Write func(context.Context, Trust) error
}

// Trust is what a target tells API servers: whom to trust, and where to call.
type Trust struct {
	Bundle []byte
	// Path is the path of the URL or of the service; "" leaves it as it is.
	Path string
}

// Target is an object that tells API servers whom to trust. Read never returns stale content. It fails with ErrMissing
// if the object does not exist.
type Target interface {
	Read(context.Context) (Held, error)
}

// Config is the configuration of a [Keeper].
type Config struct {
	Terms   Terms
	Store   Store
	Targets []Target
	// Path is the part before the token in the path of all targets, such as /node-scheduling; "" leaves paths
	// alone.
	Path string
}

// Keeper keeps the certificates of one replica. Step is for one caller; the other methods are safe for concurrent use.
type Keeper struct {
	config Config
	known  State // what Step last saw in the Secret, or wrote
	served atomic.Pointer[tls.Certificate]
	bundle atomic.Pointer[[]byte]
	tokens atomic.Pointer[[]string]
	former []former // tokens of earlier pairs
	ready  atomic.Bool
}

// former is a token that targets had. since is when they were first seen without it; zero while they may still have
// it.
type former struct {
	token string
	since time.Time
}

// NewKeeper returns a Keeper, or an error that names what is wrong with its configuration.
func NewKeeper(config Config) (*Keeper, error) {
	if config.Store == nil {
		return nil, errors.New("own certificates: Store is missing")
	}
	if err := config.Terms.Validate(); err != nil {
		return nil, err
	}
	config.Targets = slices.Clone(config.Targets)
	return &Keeper{config: config}, nil
}

// GetCertificate returns the served certificate, for tls.Config, or an error until there is one.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if served := k.served.Load(); served != nil {
		return served, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Ready reports whether clients of the targets trust the served certificate, and call by an accepted path, as far as
// the targets could last be read.
func (k *Keeper) Ready() bool { return k.ready.Load() }

// Bundle returns the authorities that clients should trust, in PEM; empty until there is a certificate.
func (k *Keeper) Bundle() []byte {
	if bundle := k.bundle.Load(); bundle != nil {
		return *bundle
	}
	return nil
}

// Tokens returns the accepted tokens at the end of the path: first that of the served pair, which targets have,
// then that of the next pair, and for a while those of earlier pairs. It is empty until there is a certificate.
func (k *Keeper) Tokens() []string {
	if tokens := k.tokens.Load(); tokens != nil {
		return *tokens
	}
	return nil
}

// Step brings the certificate, the Secret and the targets one step further, and returns what changed. After an error,
// or if another replica was faster, the next Step continues from there. The context must end within [Terms.Within]
// after now: a step that sleeps must not write an old time.
func (k *Keeper) Step(ctx context.Context, now time.Time) (Change, error) {
	// The targets come first: see the package comment.
	held, failures := k.readTargets(ctx)
	stored, err := k.config.Store.Read(ctx)
	if err != nil {
		return "", errors.Join(append(failures, fmt.Errorf("reading the Secret of certificates: %w", err))...)
	}
	state, unusable := k.interpret(stored)
	if unusable != nil { // of no use to any replica: write it anew
		failures = append(failures, fmt.Errorf("the Secret of certificates is replaced: %w", unusable))
	}
	next, change, err := state.Advance(now, k.config.Terms, len(failures) == 0 && publishes(held, k.trust(state)))
	if err != nil {
		return "", errors.Join(append(failures, err)...)
	}
	if change != "" || len(stored.Data) == 0 || unusable != nil {
		if err := stored.Write(ctx, next.data()); err != nil {
			k.adopt(state, held, failures, now) // as good as what was served before, or better
			return "", errors.Join(append(failures, unlessConflict("writing the Secret of certificates", err))...)
		}
	}
	failures = append(failures, k.publish(ctx, held, k.trust(next))...)
	k.forget(len(failures) == 0 && publishes(held, k.trust(next)), now)
	k.adopt(next, held, failures, now)
	return change, errors.Join(failures...)
}

// interpret returns the state in the Secret. Without a usable Secret, it returns what this replica knew: a deleted
// Secret must not force clients to trust another certificate.
func (k *Keeper) interpret(stored Stored) (State, error) {
	if len(stored.Data) == 0 {
		return k.known, nil
	}
	state, err := load(stored.Data)
	if err != nil {
		return k.known, err
	}
	return state, nil
}

func (k *Keeper) readTargets(ctx context.Context) (held []Held, failures []error) {
	for _, target := range k.config.Targets {
		h, err := target.Read(ctx)
		if err != nil {
			failures = append(failures, fmt.Errorf("reading who is trusted: %w", err))
			continue
		}
		held = append(held, h)
	}
	return held, failures
}

// trust returns what targets should hold in a state.
func (k *Keeper) trust(s State) Trust {
	trust := Trust{Bundle: s.Bundle()}
	if k.config.Path != "" && s.current != nil {
		trust.Path = k.config.Path + "/" + s.current.token()
	}
	return trust
}

func publishes(held []Held, trust Trust) bool {
	return !slices.ContainsFunc(held, func(h Held) bool {
		return slices.ContainsFunc(h.Bundles, func(b []byte) bool { return !bytes.Equal(b, trust.Bundle) }) ||
			trust.Path != "" && slices.ContainsFunc(h.Paths, func(p string) bool { return p != trust.Path })
	})
}

// forget drops former tokens, announceFor after all targets were first seen without them: an API server may be late.
func (k *Keeper) forget(published bool, now time.Time) {
	for i := range k.former {
		if published && k.former[i].since.IsZero() {
			k.former[i].since = now
		}
	}
	k.former = slices.DeleteFunc(k.former, func(f former) bool {
		return !f.since.IsZero() && !now.Before(f.since.Add(announceFor))
	})
}

// accepted returns the tokens of a state, and the former ones.
func (k *Keeper) accepted(s State) []string {
	tokens := []string{s.current.token()}
	if s.next != nil {
		tokens = append(tokens, s.next.token())
	}
	for _, f := range k.former {
		tokens = append(tokens, f.token)
	}
	return tokens
}

// publish writes the trust to targets that lack it, and updates held.
func (k *Keeper) publish(ctx context.Context, held []Held, trust Trust) (failures []error) {
	for i := range held {
		if publishes(held[i:i+1], trust) {
			continue
		}
		if err := held[i].Write(ctx, trust); err != nil {
			failures = append(failures, unlessConflict("publishing who is trusted", err))
			continue
		}
		for j := range held[i].Bundles {
			held[i].Bundles[j] = trust.Bundle
		}
		for j := range held[i].Paths {
			held[i].Paths[j] = trust.Path
		}
	}
	return failures
}

// adopt serves a state, and decides whether this replica is ready: never while it serves an untrusted certificate.
func (k *Keeper) adopt(state State, held []Held, failures []error, now time.Time) {
	if state.current == nil {
		return
	}
	if k.known.current != nil && k.known.current.token() != state.current.token() {
		k.former = append(k.former, former{token: k.known.current.token()})
	}
	tokens := k.accepted(state)
	ready := k.trusted(state, held, failures, now) && k.reached(held, tokens)
	if !ready {
		k.ready.Store(false)
	}
	k.known = state
	k.bundle.Store(new(state.Bundle()))
	k.tokens.Store(&tokens)
	k.served.Store(state.current.serving)
	k.ready.Store(ready)
}

// trusted reports whether all targets make clients trust the served certificate of a state. A target that cannot be
// read changes nothing: a busy API server must not take a webhook out of service. A missing target does.
func (k *Keeper) trusted(state State, held []Held, failures []error, now time.Time) bool {
	if len(held) < len(k.config.Targets) {
		return k.ready.Load() && !errors.Is(errors.Join(failures...), ErrMissing)
	}
	return !slices.ContainsFunc(held, func(h Held) bool {
		return slices.ContainsFunc(h.Bundles,
			func(bundle []byte) bool { return !state.trusted(bundle, k.config.Terms, now) })
	})
}

// reached reports whether API servers call by an accepted path, as far as the targets could be read.
func (k *Keeper) reached(held []Held, tokens []string) bool {
	return k.config.Path == "" || !slices.ContainsFunc(held, func(h Held) bool {
		return slices.ContainsFunc(h.Paths, func(path string) bool {
			return !slices.ContainsFunc(tokens, func(token string) bool { return path == k.config.Path+"/"+token })
		})
	})
}

// unlessConflict returns nil for ErrConflict: it is no failure that another replica was faster.
func unlessConflict(doing string, err error) error {
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
