package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// leafLifetime outlives every run: serving certificates and the
	// components' own are issued anew at each start.
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew is by how much certificates are valid before now.
	clockSkew = time.Hour
	// serviceIP is the first address of serviceCIDR, which the API server
	// gives to the service "kubernetes".
	serviceIP = "10.96.0.1"
)

// pki is the set of keys and certificates of one cluster, in one directory.
// etcd has an authority of its own: otherwise every user of the API server
// could also talk to etcd, around authorization. So has the front proxy, since
// the API server believes any user that a front proxy names. No certificate of
// a front proxy is issued, but without the authority the components log errors
// all the time.
type pki struct {
	dir        string
	users      *authority // signs the API server's and the users' certificates
	etcd       *authority
	frontProxy *authority
	saPath     string // the service account signing key
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	path        string // of the certificate, PEM
	pem         []byte // the certificate
}

// subject says what a certificate is for.
type subject struct {
	name   string   // common name: the user name for the API server
	groups []string // organizations: the groups for the API server
	server bool     // may serve on 127.0.0.1
	client bool     // may identify a client
}

// keyPair is a PEM certificate with its PEM private key.
type keyPair struct {
	cert, key []byte
}

// loadPKI reads the authorities in dir or creates them, and issues the
// certificates that the components use.
func loadPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the PKI directory: %w", err)
	}
	p := &pki{dir: dir, saPath: filepath.Join(dir, "service-account.key")}
	var err error
	if p.users, err = loadAuthority(dir, "ca"); err != nil {
		return nil, err
	}
	if p.etcd, err = loadAuthority(dir, "etcd-ca"); err != nil {
		return nil, err
	}
	if p.frontProxy, err = loadAuthority(dir, "front-proxy-ca"); err != nil {
		return nil, err
	}
	if _, err := loadKey(p.saPath); err != nil {
		return nil, err
	}
	for _, leaf := range []struct {
		file   string
		signer *authority
		subject
	}{
		{"serving", p.users, subject{name: "localcluster", server: true}},
		{"etcd", p.etcd, subject{name: "etcd", server: true, client: true}},
		{"etcd-client", p.etcd, subject{name: "kube-apiserver", client: true}},
	} {
		pair, err := leaf.signer.issue(leaf.subject)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(
			os.WriteFile(p.cert(leaf.file), pair.cert, 0o600),
			os.WriteFile(p.key(leaf.file), pair.key, 0o600),
		); err != nil {
			return nil, fmt.Errorf("writing certificate %s: %w", leaf.file, err)
		}
	}
	return p, nil
}

func (p *pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p *pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }

// probeTLS returns the TLS settings of a probe. It accepts only a server whose
// certificate signer has signed, so that a stranger on the port is not taken
// for ours. The client is etcd's or a member of system:masters.
func (p *pki) probeTLS(signer *authority) (*tls.Config, error) {
	pair, err := signer.issue(subject{name: "localcluster-probe", groups: []string{mastersGroup}, client: true})
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, fmt.Errorf("loading the probe's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(signer.certificate)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// issue returns a new key and a certificate for it.
func (a *authority) issue(s subject) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("creating a key for %s: %w", s.name, err)
	}
	template, err := newTemplate(s.name, leafLifetime)
	if err != nil {
		return keyPair{}, err
	}
	template.Subject.Organization = s.groups
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if s.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if s.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		template.IPAddresses = []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceIP)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("signing a certificate for %s: %w", s.name, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: encodeCertificate(der), key: encoded}, nil
}

// loadAuthority reads name.crt and name.key in dir, or creates both.
func loadAuthority(dir, name string) (*authority, error) {
	key, err := loadKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name+".crt")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = selfSign(key, "joiner-local-"+name); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("loading certificate authority %s: %w", name, err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("loading certificate authority %s: %s holds no PEM certificate", name, path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("loading certificate authority %s: %w", path, err)
	}
	return &authority{certificate: certificate, key: key, path: path, pem: data}, nil
}

// selfSign returns the PEM certificate of a new authority.
func selfSign(key *ecdsa.PrivateKey, name string) ([]byte, error) {
	template, err := newTemplate(name, authorityLifetime)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return encodeCertificate(der), nil
}

// newTemplate returns what all certificates have in common.
func newTemplate(name string, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("creating a serial number for %s: %w", name, err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

// loadKey reads a PEM private key, or creates it.
func loadKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("loading a private key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("loading a private key: %s holds no PEM block", path)
	}
	parsed, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("loading a private key from %s: %w", path, err)
	}
	return parsed, nil
}

func createKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating a private key: %w", err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		return nil, fmt.Errorf("writing a private key: %w", err)
	}
	return key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
