package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// issued is a certificate for a client, and the authority that signed it in PEM.
func issued(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(template, parent *x509.Certificate) []byte {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour),
			time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	authority := sign(root, root)
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{
		x509.ExtKeyUsageClientAuth,
	}}
	return tls.Certificate{Certificate: [][]byte{sign(leaf, root)}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})
}

// byCertificate serves --authentication=ClientCertificate by TLS, as the program does. It returns what a client with
// these certificates gets: the status, or 0 for no connection.
func byCertificate(t *testing.T, secured *tls.Config, names ...string) func(shows ...tls.Certificate) int {
	t.Helper()
	config := Config{Authentication: ByCertificate, ClientNames: names}
	verify, err := config.verifier(nil, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	given := httptest.NewTLSServer(nil)
	given.Close()
	secured.Certificates = given.TLS.Certificates
	server := httptest.NewUnstartedServer(config.handler(verify, next, Rejections()))
	server.TLS = secured
	server.StartTLS()
	t.Cleanup(server.Close)
	return func(shows ...tls.Certificate) int {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, GetClientCertificate: func(
				*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(shows) == 0 {
					return &tls.Certificate{}, nil
				}
				return &shows[0], nil
			}}}}
		response, err := client.Post(server.URL+Path, "application/json", nil)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
}

// with --authentication=ClientCertificate, only a certificate of the authority with one of the names is
// answered. The test uses TLS, as the program serves it.
func TestA14_OnlyNamedCertificatesAreAnswered(t *testing.T) {
	t.Parallel()
	named, authority := issued(t, "kube-apiserver")
	foreign, _ := issued(t, "kube-apiserver")
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		names  []string
		shows  []tls.Certificate
		status int // 0: no connection
	}{
		"the API server":           {[]string{"other", "kube-apiserver"}, []tls.Certificate{named}, http.StatusTeapot},
		"another name":             {[]string{"other"}, []tls.Certificate{named}, http.StatusUnauthorized},
		"nothing":                  {[]string{"kube-apiserver"}, nil, http.StatusUnauthorized},
		"one of another authority": {[]string{"kube-apiserver"}, []tls.Certificate{foreign}, 0},
	} {
		secured, err := Config{ClientCAFile: file}.tls(logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		if got := byCertificate(t, secured, c.names...)(c.shows...); got != c.status {
			t.Errorf("%s: status %d, want %d", name, got, c.status)
		}
	}
}

// the authority of callers is renewed without a restart. While the file is spoilt, the last authority stays, and
// the log says so once. At the start, a file without an authority is an error.
func TestA14_TheAuthorityOfCallersIsReadAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ca.crt")
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("x"))
	if _, err := (Config{ClientCAFile: path}).tls(logr.Discard()); err == nil ||
		!strings.Contains(err.Error(), "has no certificate in PEM") {
		t.Errorf("a file without an authority: error %v", err)
	}
	old, first := issued(t, "kube-apiserver")
	renewed, second := issued(t, "kube-apiserver")
	write(first)
	var said []string
	log := funcr.New(func(_, text string) { said = append(said, text) }, funcr.Options{})
	authority, err := openFile(func() (*x509.CertPool, error) { return readAuthority(path) }, log)
	if err != nil {
		t.Fatal(err)
	}
	ask := byCertificate(t, securedBy(authority), "kube-apiserver")
	expect := func(what string, ofOld, ofNew int) {
		t.Helper()
		if gotOld, gotNew := ask(old), ask(renewed); gotOld != ofOld || gotNew != ofNew {
			t.Errorf("%s: the old certificate gets %d, the new one %d, want %d and %d", what, gotOld, gotNew, ofOld,
				ofNew)
		}
	}
	late := func() { // as if the last look were long ago
		known := *authority.known.Load()
		known.at = time.Now().Add(-time.Minute)
		authority.known.Store(&known)
	}
	write(second)
	expect("at once", http.StatusTeapot, 0)
	late()
	expect("later", 0, http.StatusTeapot)
	for range 2 {
		write([]byte("x"))
		late()
		expect("spoilt", 0, http.StatusTeapot)
	}
	if len(said) != 1 || !strings.Contains(said[0], "--client-ca-file") {
		t.Errorf("said %q, want the file once", said)
	}
	write(append(first, second...))
	late()
	expect("both", http.StatusTeapot, http.StatusTeapot)
}
