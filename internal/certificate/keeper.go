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
	// ErrConflict says that somebody else has written since the object was read.
	ErrConflict = errors.New("it was changed meanwhile")
	// ErrMissing says that an object does not exist.
	ErrMissing = errors.New("it does not exist")
)

// Stored is the Secret as it was read.
type Stored struct {
	// Data is its content; empty when there is none.
	Data map[string][]byte
	// Write replaces the content, or creates the Secret, and fails with ErrConflict unless it is still as it was read.
	Write func(context.Context, map[string][]byte) error
}

// Store is the Secret that replicas share. Read never answers with old content.
type Store interface {
	Read(context.Context) (Stored, error)
}

// Held is what a target holds.
type Held struct {
	// Bundles are the caBundles, one for each place of the object that has one.
	Bundles [][]byte
	// Paths are the paths by which the API server calls, one for each bundle; nil where nobody keeps them.
	Paths []string
	// Write puts what is wanted into every place, and fails with ErrConflict unless the object is still as it was read.
	Write func(context.Context, Trust) error
}

// Trust is what a target tells API servers: whom to believe, and where to call.
type Trust struct {
	Bundle []byte
	// Path is the path of the URL or of the service; "" leaves it as it is.
	Path string
}

// Target is an object that tells API servers whom to trust. Read never answers with old content. It fails with ErrMissing
// when the object does not exist.
type Target interface {
	Read(context.Context) (Held, error)
}

// Config is what a Keeper needs.
type Config struct {
	Terms   Terms
	Store   Store
	Targets []Target
	// Path is what comes before the token in the path of all targets, such as /node-scheduling; "" leaves paths alone.
	Path string
}

// Keeper keeps the certificates of one replica. Step is for one caller; the other methods are for any number, at any time.
type Keeper struct {
	config Config
	known  State // what Step last saw in the Secret, or wrote
	served atomic.Pointer[tls.Certificate]
	bundle atomic.Pointer[[]byte]
	tokens atomic.Pointer[[]string]
	former []former // tokens of pairs that were served before
	ready  atomic.Bool
}

// former is a token that targets had, with when they were first seen without it; zero while they may still have it.
type former struct {
	token string
	since time.Time
}

// NewKeeper makes a Keeper. An error names what of its configuration is wrong.
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

// GetCertificate is for tls.Config: it returns the newest certificate, with an error until there is one.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if served := k.served.Load(); served != nil {
		return served, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Ready says whether clients that believe the targets trusted what is served, when that could last be read.
func (k *Keeper) Ready() bool { return k.ready.Load() }

// Bundle is what clients are to trust, in PEM; empty until there is a certificate.
func (k *Keeper) Bundle() []byte {
	if bundle := k.bundle.Load(); bundle != nil {
		return *bundle
	}
	return nil
}

// Tokens are those that a caller may end the path with, the one that targets are given first: of the pair that is served, of the one that
// follows it, and for a while of those before. They are empty until there is a certificate.
func (k *Keeper) Tokens() []string {
	if tokens := k.tokens.Load(); tokens != nil {
		return *tokens
	}
	return nil
}

// Step brings the certificate, the Secret and the targets one step further, and says what changed. After an error, or when
// another replica was faster, the next Step goes on from there. The context must end seconds after now: a step that sleeps
// must not write a time that is long past.
func (k *Keeper) Step(ctx context.Context, now time.Time) (Change, error) {
	// The targets come first: see the package comment.
	held, failures := k.readTargets(ctx)
	stored, err := k.config.Store.Read(ctx)
	if err != nil {
		return "", errors.Join(append(failures, fmt.Errorf("reading the Secret of certificates: %w", err))...)
	}
	state, unusable := k.interpret(stored)
	if unusable != nil { // of no use to any replica: it is written anew
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

// interpret returns the state of the Secret. Without a usable Secret it is what this replica knew, so that nobody has to
// trust another certificate because a Secret was deleted.
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

// trust is what targets are to hold in a state.
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

// forget counts the time of tokens that are not given out any more from when all targets were seen without them, and drops those whose time
// is over: an API server may be late.
func (k *Keeper) forget(published bool, now time.Time) {
	for i := range k.former {
		if published && k.former[i].since.IsZero() {
			k.former[i].since = now
		}
	}
	k.former = slices.DeleteFunc(k.former, func(f former) bool { return !f.since.IsZero() && !now.Before(f.since.Add(announceFor)) })
}

// accepted are the tokens of a state, and those before.
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

// publish writes what is wanted where it is missing, and notes in held what the targets have then.
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

// adopt serves a state, and decides whether this replica may be called: never while it serves what is not trusted.
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

// trusted says whether all targets make clients trust what is served in a state. A target that cannot be read changes nothing:
// a webhook that is in use must not be taken out of service because the API server is busy. One that does not exist does.
func (k *Keeper) trusted(state State, held []Held, failures []error, now time.Time) bool {
	if len(held) < len(k.config.Targets) {
		return k.ready.Load() && !errors.Is(errors.Join(failures...), ErrMissing)
	}
	return !slices.ContainsFunc(held, func(h Held) bool {
		return slices.ContainsFunc(h.Bundles, func(bundle []byte) bool { return !state.trusted(bundle, k.config.Terms, now) })
	})
}

// reached says whether API servers call by a path that is accepted, as far as the targets could be read.
func (k *Keeper) reached(held []Held, tokens []string) bool {
	return k.config.Path == "" || !slices.ContainsFunc(held, func(h Held) bool {
		return slices.ContainsFunc(h.Paths, func(path string) bool {
			return !slices.ContainsFunc(tokens, func(token string) bool { return path == k.config.Path+"/"+token })
		})
	})
}

// unlessConflict: that another replica was faster is no failure.
func unlessConflict(doing string, err error) error {
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
