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
	"testing"
	"time"
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
		config := Config{Authentication: ByCertificate, ClientCAFile: file, ClientNames: c.names}
		secured, err := config.tls()
		if err != nil {
			t.Fatal(err)
		}
		verify, err := config.verifier(nil)
		if err != nil {
			t.Fatal(err)
		}
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		server := httptest.NewUnstartedServer(config.handler(verify, next, Rejections()))
		server.TLS = secured
		server.StartTLS()
		client := server.Client()
		transport := client.Transport.(*http.Transport)
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(c.shows) == 0 {
				return &tls.Certificate{}, nil
			}
			return &c.shows[0], nil
		}
		response, err := client.Post(server.URL+Path, "application/json", nil)
		switch {
		case c.status == 0 && err == nil:
			t.Errorf("%s: status %d, want no connection", name, response.StatusCode)
		case c.status != 0 && (err != nil || response.StatusCode != c.status):
			t.Errorf("%s: %v, %+v, want %d", name, err, response, c.status)
		}
		if err == nil {
			_ = response.Body.Close()
		}
		server.Close()
	}
}
