package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Keys of the Secret, with the usual names where there are any.
const (
	certificateKey     = "tls.crt"
	privateKeyKey      = "tls.key"
	bundleKey          = "ca.crt"
	nextCertificateKey = "next.crt"
	nextPrivateKeyKey  = "next.key"
	announcedKey       = "next-announced" // RFC 3339; absent until every target holds the next pair's authority
)

// State is what the replicas of a webhook share. It is immutable. The zero value is the state of a webhook that never
// ran.
type State struct {
	current, next *pair
	authorities   []*x509.Certificate // oldest first
	announced     time.Time           // zero until step 2
}

// Change says how a state changed.
type Change string

// The changes. The empty one means no change.
const (
	Created   Change = "the first certificate was made"
	Replaced  Change = "the certificate could not be used any more and was replaced at once"
	Prepared  Change = "the next certificate was made"
	Announced Change = "the next certificate's authority is published"
	Renewed   Change = "the next certificate is served"
	Forgotten Change = "an authority has expired"
)

// Advance returns the next state at a time, and what changed. published says that every target holds the authorities
// of s. Write a changed state before you use it. An error says that no certificate could be made.
func (s State) Advance(now time.Time, terms Terms, published bool) (State, Change, error) {
	switch {
	case s.current == nil:
		return s.replace(now, terms, Created)
	case !usable(s.current.leaf(), now): // nobody trusts it: no reason to wait
		return s.replace(now, terms, Replaced)
	case s.next == nil && terms.due(s.current.leaf(), now), s.next != nil && !usable(s.next.leaf(), now):
		made, authority, err := terms.issue(now)
		if err != nil {
			return s, "", err
		}
		return State{current: s.current, next: made, authorities: append(s.alive(now), authority)}, Prepared, nil
	case s.next != nil && s.announced.IsZero() && published:
		s.announced = now
		return s, Announced, nil
	case s.next != nil && !s.announced.IsZero() && published && !now.Before(s.announced.Add(terms.announce())):
		return State{current: s.next, authorities: s.authorities}, Renewed, nil
	case len(s.alive(now)) < len(s.authorities):
		s.authorities = s.alive(now)
		return s, Forgotten, nil
	}
	return s, "", nil
}

// replace serves the next pair at once, or a new one.
func (s State) replace(now time.Time, terms Terms, change Change) (State, Change, error) {
	if s.next != nil && usable(s.next.leaf(), now) {
		return State{current: s.next, authorities: s.alive(now)}, change, nil
	}
	made, authority, err := terms.issue(now)
	if err != nil {
		return s, "", err
	}
	return State{current: made, authorities: append(s.alive(now), authority)}, change, nil
}

// alive returns the authorities that have not expired.
func (s State) alive(now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(s.authorities), func(c *x509.Certificate) bool {
		return !now.Before(c.NotAfter)
	})
}

// Bundle returns the authorities that a client should trust, in PEM. Equal states give equal bytes.
func (s State) Bundle() []byte { return encode(s.authorities) }

// encode returns certificates in PEM.
func encode(certificates []*x509.Certificate) []byte {
	var bundle bytes.Buffer
	for _, certificate := range certificates {
		bundle.Write(block("CERTIFICATE", certificate.Raw))
	}
	return bundle.Bytes()
}

// trusted reports whether a client with this bundle accepts the served pair, for every host.
func (s State) trusted(bundle []byte, terms Terms, now time.Time) bool {
	if s.current == nil || terms.lacksHost(s.current.leaf()) {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := s.current.leaf().Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err == nil
}

// data returns the content of the Secret.
func (s State) data() map[string][]byte {
	if s.current == nil {
		return nil
	}
	data := map[string][]byte{certificateKey: s.current.certificate, privateKeyKey: s.current.key,
		bundleKey: s.Bundle()}
	if s.next != nil {
		data[nextCertificateKey], data[nextPrivateKeyKey] = s.next.certificate, s.next.key
		if !s.announced.IsZero() {
			data[announcedKey] = []byte(s.announced.UTC().Format(time.RFC3339Nano))
		}
	}
	return data
}

// load parses what data returned. An error names the wrong key of the Secret, and never contains a part of a private
// key.
func load(data map[string][]byte) (s State, err error) {
	if s.current, err = parsePair(data[certificateKey], data[privateKeyKey]); err != nil {
		return State{}, fmt.Errorf("%s and %s: %w", certificateKey, privateKeyKey, err)
	}
	if s.authorities, err = parseBundle(data[bundleKey]); err != nil {
		return State{}, fmt.Errorf("%s: %w", bundleKey, err)
	}
	if len(data[nextCertificateKey]) > 0 {
		if s.next, err = parsePair(data[nextCertificateKey], data[nextPrivateKeyKey]); err != nil {
			return State{}, fmt.Errorf("%s and %s: %w", nextCertificateKey, nextPrivateKeyKey, err)
		}
		if text := data[announcedKey]; len(text) > 0 {
			if s.announced, err = time.Parse(time.RFC3339Nano, string(text)); err != nil {
				return State{}, fmt.Errorf("%s: %w", announcedKey, err)
			}
		}
	}
	for _, p := range []*pair{s.current, s.next} {
		if p != nil && !slices.ContainsFunc(s.authorities, func(a *x509.Certificate) bool {
			return p.leaf().CheckSignatureFrom(a) == nil
		}) {
			return State{}, fmt.Errorf("%s has not the authority of %q", bundleKey, p.leaf().Subject)
		}
	}
	return s, nil
}

// parseBundle parses certificates in PEM, at most maxAuthorities.
func parseBundle(bundle []byte) ([]*x509.Certificate, error) {
	// maxAuthorities is far above what a renewal at two thirds of a lifetime leaves: two, and the next.
	const maxAuthorities = 100
	var found []*x509.Certificate
	for rest := bundle; ; {
		var decoded *pem.Block
		if decoded, rest = pem.Decode(rest); decoded == nil {
			break
		}
		authority, err := x509.ParseCertificate(decoded.Bytes)
		if err != nil {
			return nil, err
		}
		if found = append(found, authority); len(found) > maxAuthorities {
			return nil, fmt.Errorf("more than %d certificates", maxAuthorities)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return found, nil
}
