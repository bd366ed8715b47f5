package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

// unread is a body that must not be read.
type unread struct{ t *testing.T }

// Read implements io.Reader.
func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of somebody unknown was read")
	return 0, io.EOF
}

// a caller without the token, or the certificate, gets a status and nothing else: its body is not read, Next is
// not called, and the refusal is counted.
func TestA14_StrangersGetNoAnswer(t *testing.T) {
	t.Parallel()
	const base, token = "/node-scheduling", "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
	byPath := webhook.ByPath(base, func() []string { return []string{token, "next"} })
	none := webhook.ByPath(base, func() []string { return nil })
	odd := webhook.ByPath(base, func() []string { return []string{"", "/elsewhere"} })
	byName := webhook.ByCertificate(base, []string{"kube-apiserver"})
	shows := func(name string) *tls.ConnectionState {
		return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
	}
	for _, c := range []struct {
		what   string
		verify webhook.Caller
		path   string
		shows  *tls.ConnectionState
		status int
	}{
		{"the token", byPath, base + "/" + token, nil, 200},
		{"the token that follows", byPath, base + "/next", nil, 200},
		{"no token", byPath, base, nil, 404},
		{"an empty token", byPath, base + "/", nil, 404},
		{"a part of the token", byPath, base + "/" + token[:40], nil, 404},
		{"the token and more", byPath, base + "/" + token + "/", nil, 404},
		{"another token", byPath, base + "/" + strings.ToUpper(token), nil, 404},
		{"another path", byPath, "/" + token, nil, 404},
		{"no token is known yet", none, base + "/", nil, 404},
		{"an empty token that a file has", odd, base + "/", nil, 404},
		{"a token that is a path, elsewhere", odd, "/elsewhere", nil, 404},
		{"a certificate", byName, base, shows("kube-apiserver"), 200},
		{"a certificate of another name", byName, base, shows("kubelet"), 401},
		{"no certificate", byName, base, &tls.ConnectionState{
			PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "kube-apiserver"}}},
		}, 401},
		{"no TLS", byName, base, nil, 401},
		{"a certificate at another path", byName, "/", shows("kube-apiserver"), 404},
		{"anybody", webhook.Anybody(base), base, nil, 200},
		{"anybody elsewhere", webhook.Anybody(base), base + "/x", nil, 404},
	} {
		rejected, asked := 0, 0
		callers := webhook.Callers{Verify: c.verify, Rejected: func() { rejected++ },
			Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ })}
		request := httptest.NewRequest(http.MethodPost, c.path, unread{t})
		request.TLS = c.shows
		recorder := httptest.NewRecorder()
		callers.ServeHTTP(recorder, request)
		if fine := c.status == 200; recorder.Code != c.status || (asked == 1) != fine || (rejected == 1) == fine {
			t.Errorf("%s: status %d, asked %d times, rejected %d; want %d", c.what, recorder.Code, asked, rejected,
				c.status)
		}
	}
	recorder := httptest.NewRecorder()
	webhook.Callers{Verify: none}.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, base, unread{t}))
	if recorder.Code != 404 {
		t.Errorf("where nobody counts: status %d", recorder.Code)
	}
}
