package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// Lifetime is how long a new certificate is valid, unless Terms say otherwise. The next one is made when a third
	// of it is left: time for an administrator to notice that renewals fail.
	Lifetime = 90 * 24 * time.Hour
	// MinLifetime is the shortest lifetime that Terms may ask for: the steps of a renewal take a while.
	MinLifetime = time.Minute
	// announceFor is how long an authority is published before its certificate is served. API servers learn of a
	// change within seconds; minutes allow for one that has lost its connection to etcd.
	announceFor = 5 * time.Minute
	// clockSkew is how far the clocks of replicas and API servers may be apart.
	clockSkew = time.Hour
	// everyAtMost bounds the time between two steps: a changed or new target gets the bundle within it.
	everyAtMost = 10 * time.Second
)

// Terms says which certificates a webhook wants.
type Terms struct {
	// Name is the name of the program, for people who look at a certificate.
	Name string
	// Hosts are the DNS names and IP addresses by which the API server calls, at least one.
	Hosts []string
	// Lifetime is how long a certificate is valid.
	Lifetime time.Duration
}

// Validate returns an error that names the first field that cannot work.
func (t Terms) Validate() error {
	switch {
	case t.Name == "":
		return errors.New("own certificates: Name is missing")
	case len(t.Hosts) == 0:
		return errors.New("own certificates: Hosts is empty: want the names by which the API server calls")
	case t.Lifetime < MinLifetime:
		return fmt.Errorf("own certificates: Lifetime is %s: want at least %s", t.Lifetime, MinLifetime)
	}
	return nil
}

// Every returns the time from one step to the next.
func (t Terms) Every() time.Duration { return min(everyAtMost, t.announce()/5) }

// Within returns how long one step may take. A step writes the time at which it began. That must be recent, compared
// with how long an authority is published.
func (t Terms) Within() time.Duration { return max(everyAtMost, t.announce()/10) }

func (t Terms) announce() time.Duration { return min(announceFor, t.Lifetime/12) }

// due reports whether the certificate after cert must be made now: cert is old, lacks a host, or was made for another
// lifetime.
func (t Terms) due(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotAfter.Add(-t.Lifetime/3)) || cert.NotAfter.After(now.Add(t.Lifetime+clockSkew)) ||
		t.lacksHost(cert)
}

func (t Terms) lacksHost(cert *x509.Certificate) bool {
	for _, host := range t.Hosts {
		if cert.VerifyHostname(host) != nil {
			return true
		}
	}
	return false
}

// pair is a certificate for serving with its key.
type pair struct {
	certificate, key []byte // PEM
	serving          *tls.Certificate
}

func (p *pair) leaf() *x509.Certificate { return p.serving.Leaf }

// token returns the proof that a caller has read a target: 32 bytes that only holders of the key, and so all replicas,
// can compute. It changes with the key.
func (p *pair) token() string {
	sum := sha256.Sum256(append([]byte("the path to the webhook\n"), p.key...))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// parsePair reads a certificate and its key in PEM.
func parsePair(certificate, key []byte) (*pair, error) {
	serving, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	if serving.Leaf == nil {
		return nil, errors.New("the certificate is not parsed")
	}
	return &pair{certificate: certificate, key: key, serving: &serving}, nil
}

// issue makes an authority and the one certificate that it signs. It discards the authority's key: whoever reads the
// Secret can impersonate the webhook, but nobody else.
func (t Terms) issue(now time.Time) (*pair, *x509.Certificate, error) {
	name := make([]byte, 8) // authorities need different names, or a client may try the wrong one
	if _, err := rand.Read(name); err != nil {
		return nil, nil, err
	}
	from, until := now.Add(-clockSkew).UTC(), now.Add(t.Lifetime).UTC()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	root := &x509.Certificate{
		Subject: pkix.Name{CommonName: t.Name + " authority " + hex.EncodeToString(name)}, NotBefore: from,
		NotAfter: until,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: t.Name}, NotBefore: from, NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range t.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	if der, err = x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey); err != nil {
		return nil, nil, fmt.Errorf("making a certificate for %q: %w", t.Hosts, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	made, err := parsePair(block("CERTIFICATE", der), block("PRIVATE KEY", encoded))
	return made, authority, err
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func usable(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && now.Before(cert.NotAfter)
}
