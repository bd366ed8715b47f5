package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// readEvery is how long a change of a file may go unnoticed.
const readEvery = 10 * time.Second

// file is what a file says about callers. It is read anew while the program runs, so that somebody else can renew it.
type file[T any] struct {
	read  func() (T, error)
	log   logr.Logger
	known atomic.Pointer[reading[T]]
}

// reading is what was read from a file, and when. fault says why the last look found nothing good.
type reading[T any] struct {
	content T
	at      time.Time
	fault   string
}

// openFile reads a file for the first time. Then a bad file is an error.
func openFile[T any](read func() (T, error), log logr.Logger) (*file[T], error) {
	content, err := read()
	if err != nil {
		return nil, err
	}
	f := &file[T]{read: read, log: log}
	f.known.Store(&reading[T]{content: content, at: time.Now()})
	return f, nil
}

// get returns what the file said a few seconds ago; while it is bad, what the last good look found.
func (f *file[T]) get() T {
	known := f.known.Load()
	now := time.Now()
	if now.Sub(known.at) <= readEvery {
		return known.content
	}
	next := &reading[T]{content: known.content, at: now}
	content, err := f.read()
	if err == nil {
		next.content = content
	} else {
		next.fault = err.Error()
	}
	if f.known.CompareAndSwap(known, next) && err != nil && next.fault != known.fault {
		f.log.Error(err, "a file about callers cannot be used; what was read last holds")
	}
	return f.known.Load().content
}

// tls returns the TLS settings without the certificate. With --client-ca-file clients may show a certificate of that
// CA; the handler decides about clients without one.
func (c Config) tls(log logr.Logger) (*tls.Config, error) {
	if c.ClientCAFile == "" {
		return securedBy(nil), nil
	}
	authority, err := openFile(func() (*x509.CertPool, error) { return readAuthority(c.ClientCAFile) }, log)
	if err != nil {
		return nil, err
	}
	return securedBy(authority), nil
}

// securedBy returns TLS settings with which each new connection is verified by the authority that its file has then. A
// nil authority verifies nobody.
func securedBy(authority *file[*x509.CertPool]) *tls.Config {
	secured := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if authority == nil {
		return secured
	}
	secured.ClientAuth, secured.ClientCAs = tls.VerifyClientCertIfGiven, authority.get()
	secured.SessionTicketsDisabled = true // a ticket would outlive the authority that it was given under
	secured.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := secured.Clone() // with the certificate, which is set later
		current.GetConfigForClient, current.ClientCAs = nil, authority.get()
		return current, nil
	}
	return secured
}

func readAuthority(path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("--client-ca-file %s has no certificate in PEM", path)
	}
	return pool, nil
}
