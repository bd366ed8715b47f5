package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// Caller reports whether a request comes from an API server that knows this webhook. status is the HTTP status to
// refuse with.
type Caller func(*http.Request) (verified bool, status int)

// Callers serves verified callers, and nobody else. It does not read the body of a refused request.
type Callers struct {
	// Verify decides who may ask.
	Verify Caller
	// Next answers them.
	Next http.Handler
	// Rejected is called for every refusal. It may be nil.
	Rejected func()
}

// ServeHTTP passes verified requests to Next. It refuses others without a reason: they have no right to know it.
func (c Callers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if verified, status := c.Verify(r); !verified {
		if c.Rejected != nil {
			c.Rejected()
		}
		http.Error(w, http.StatusText(status), status)
		return
	}
	c.Next.ServeHTTP(w, r)
}

// ByPath verifies callers by a token, the last element of the path after base. Only readers of the webhook's
// configuration know it. It is compared in constant time.
func ByPath(base string, tokens func() []string) Caller {
	return func(r *http.Request) (bool, int) {
		token, found := strings.CutPrefix(r.URL.Path, base+"/")
		given, known := sha256.Sum256([]byte(token)), 0
		for _, accepted := range tokens() {
			want := sha256.Sum256([]byte(accepted))
			known |= subtle.ConstantTimeCompare(given[:], want[:])
		}
		return found && token != "" && known == 1, http.StatusNotFound
	}
}

// ByCertificate verifies callers by the common name of a client certificate that the TLS server has verified.
func ByCertificate(base string, names []string) Caller {
	return func(r *http.Request) (bool, int) {
		if r.URL.Path != base {
			return false, http.StatusNotFound
		}
		verified := r.TLS != nil && len(r.TLS.VerifiedChains) > 0 &&
			slices.Contains(names, r.TLS.VerifiedChains[0][0].Subject.CommonName)
		return verified, http.StatusUnauthorized
	}
}

// Anybody accepts every caller.
func Anybody(base string) Caller {
	return func(r *http.Request) (bool, int) { return r.URL.Path == base, http.StatusNotFound }
}
