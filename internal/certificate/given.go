package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// forgetAfter is how long an authority that a replica does not know stays published: the files of another replica may
// be newer or older. Kubelets bring a changed Secret to all pods within about two minutes.
const forgetAfter = 10 * time.Minute

// Part is the content of a file, and its name in messages.
type Part struct {
	Name string
	Data []byte // PEM
}

// Content is what somebody else provides: a certificate with its intermediates, its key, and the authorities that
// clients should trust.
type Content struct{ Certificate, Key, Authorities Part }

func (c Content) equal(other Content) bool {
	return bytes.Equal(c.Certificate.Data, other.Certificate.Data) && bytes.Equal(c.Key.Data, other.Key.Data) &&
		bytes.Equal(c.Authorities.Data, other.Authorities.Data)
}

// GivenConfig is the configuration of a [Given].
type GivenConfig struct {
	// Read returns the content as it is now.
	Read func() (Content, error)
	// Hosts are the DNS names and IP addresses by which the API server calls.
	Hosts   []string
	Targets []Target
}

// Given serves certificates that somebody else makes and renews (V-20), and makes every target trust them. It serves a
// changed one when its authorities have been in all targets for a while, as with own certificates (see the package
// comment). Each replica uses its own files, and leaves alone for forgetAfter what others publish. Step is for one
// caller; the other methods are safe for concurrent use.
type Given struct {
	config        GivenConfig // Targets in an order that stays
	current, next *given
	announced     time.Time // zero until every target has next's authorities
	refused       Content   // invalid content, when last read
	// for each target, authorities of others, in DER, and when they were first seen
	unknown []map[string]time.Time
	served  atomic.Pointer[tls.Certificate]
	bundle  atomic.Pointer[[]byte]
}

// given is content that was checked.
type given struct {
	content     Content
	pair        *pair
	authorities []*x509.Certificate
}

// NewGiven reads the content for the first time. It returns an error that names what is wrong with it.
func NewGiven(config GivenConfig, now time.Time) (*Given, error) {
	content, err := config.Read()
	if err != nil {
		return nil, err
	}
	first, err := config.check(content, now)
	if err != nil {
		return nil, err
	}
	g := &Given{config: config, current: first, unknown: make([]map[string]time.Time, len(config.Targets))}
	g.adopt()
	return g, nil
}

// GetCertificate returns the served certificate, for tls.Config.
func (g *Given) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return g.served.Load(), nil
}

// Bundle returns the authorities that clients should trust, in PEM.
func (g *Given) Bundle() []byte { return *g.bundle.Load() }

// Step reads the content and the targets, publishes, and returns what changed. After an error, the next Step continues
// from there.
func (g *Given) Step(ctx context.Context, now time.Time) (Change, error) {
	change, err := g.read(now)
	failures := []error{err}
	published := true
	for i, target := range g.config.Targets {
		missing, err := g.publish(ctx, i, target, now)
		failures = append(failures, err)
		published = published && !missing && err == nil
	}
	if next := g.advance(now, published); next != "" {
		change = next
	}
	if leaf := g.current.pair.leaf(); !usable(leaf, now) {
		failures = append(failures, fmt.Errorf("%s has expired at %s", g.current.content.Certificate.Name,
			leaf.NotAfter.UTC().Format(time.RFC3339)))
	}
	return change, errors.Join(failures...)
}

// publish writes our authorities to a target that lacks one, and reports whether it lacked one.
func (g *Given) publish(ctx context.Context, i int, target Target, now time.Time) (missing bool, err error) {
	held, err := target.Read(ctx)
	if err != nil {
		return false, fmt.Errorf("reading who is trusted: %w", err)
	}
	bundle, missing, write := g.merge(i, held.Bundles, now)
	if !write {
		return missing, nil
	}
	if err := held.Write(ctx, Trust{Bundle: bundle}); err != nil {
		return missing, unlessConflict("publishing who is trusted", err)
	}
	return missing, nil
}

// read takes over changed content. Invalid content is an error only when it is read a second time: files are not
// replaced all at once.
func (g *Given) read(now time.Time) (Change, error) {
	content, err := g.config.Read()
	if err != nil {
		return "", err
	}
	if content.equal(g.current.content) {
		g.next, g.announced, g.refused = nil, time.Time{}, Content{}
		g.adopt()
		return "", nil
	}
	if g.next != nil && content.equal(g.next.content) {
		return "", nil
	}
	next, err := g.config.check(content, now)
	if err != nil {
		known := content.equal(g.refused)
		if g.refused = content; known {
			return "", err
		}
		return "", nil
	}
	g.next, g.announced, g.refused = next, time.Time{}, Content{}
	g.adopt()
	return Prepared, nil
}

// advance serves the next content when it is time. published says that every target has its authorities.
func (g *Given) advance(now time.Time, published bool) Change {
	switch {
	case g.next == nil:
		return ""
	case !usable(g.current.pair.leaf(), now): // nobody trusts it: no reason to wait
		g.current, g.next = g.next, nil
		g.adopt()
		return Replaced
	case !published:
		g.announced = time.Time{}
		return ""
	case g.announced.IsZero():
		g.announced = now
		return Announced
	case now.Before(g.announced.Add(announceFor)):
		return ""
	}
	g.current, g.next = g.next, nil
	g.adopt()
	return Renewed
}

// adopt updates what GetCertificate and Bundle return.
func (g *Given) adopt() {
	g.bundle.Store(new(encode(g.authorities())))
	g.served.Store(g.current.pair.serving)
}

// authorities returns the authorities of the current and the next content.
func (g *Given) authorities() []*x509.Certificate {
	all := slices.Clone(g.current.authorities)
	if g.next == nil {
		return all
	}
	for _, authority := range g.next.authorities {
		if !slices.ContainsFunc(all, authority.Equal) {
			all = append(all, authority)
		}
	}
	return all
}

// merge returns the bundle to publish in a target that has these bundles, whether an authority of ours is missing
// there, and whether to write.
func (g *Given) merge(target int, bundles [][]byte, now time.Time) (bundle []byte, missing, write bool) {
	ours := g.authorities()
	wanted := slices.Clone(ours)
	seen := map[string]time.Time{}
	for _, b := range bundles {
		published, err := parseBundle(b)
		missing = missing || err != nil ||
			slices.ContainsFunc(ours, func(a *x509.Certificate) bool {
				return !slices.ContainsFunc(published, a.Equal)
			})
		for _, authority := range published {
			if slices.ContainsFunc(ours, authority.Equal) {
				continue
			}
			since, known := g.unknown[target][string(authority.Raw)]
			if !known {
				since = now
			}
			seen[string(authority.Raw)] = since
			if !now.Before(since.Add(forgetAfter)) || !now.Before(authority.NotAfter) {
				write = true
			} else if !slices.ContainsFunc(wanted, authority.Equal) {
				wanted = append(wanted, authority)
			}
		}
	}
	g.unknown[target] = seen
	return encode(wanted), missing, write || missing
}

// check returns content that can be served. An error names the part that is wrong.
func (c GivenConfig) check(content Content, now time.Time) (*given, error) {
	p, err := parsePair(content.Certificate.Data, content.Key.Data)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", content.Certificate.Name, content.Key.Name, err)
	}
	leaf := p.leaf()
	if !usable(leaf, now) {
		return nil, fmt.Errorf("%s is valid from %s to %s: want one that is valid now", content.Certificate.Name,
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	for _, host := range c.Hosts {
		if err := leaf.VerifyHostname(host); err != nil {
			return nil, fmt.Errorf("%s is not for %q, by which the API server calls: %w", content.Certificate.Name,
				host, err)
		}
	}
	authorities, err := parseBundle(content.Authorities.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", content.Authorities.Name, err)
	}
	if err := verify(p, authorities, now); err != nil {
		return nil, fmt.Errorf("%s is not trusted by who trusts %s: %w", content.Certificate.Name,
			content.Authorities.Name, err)
	}
	return &given{content: content, pair: p, authorities: authorities}, nil
}

// verify checks a pair as a client that trusts the authorities.
func verify(p *pair, authorities []*x509.Certificate, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, authority := range authorities {
		roots.AddCert(authority)
	}
	for _, der := range p.serving.Certificate[1:] {
		if certificate, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(certificate)
		}
	}
	_, err := p.leaf().Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now})
	return err
}
