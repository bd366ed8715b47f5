package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// Caller says whether a request comes from an API server that was told of this webhook. The status is that of the refusal.
type Caller func(*http.Request) (verified bool, status int)

// Callers serves those who show who they are, and nobody else: what is refused is not read.
type Callers struct {
	// Verify says who may ask.
	Verify Caller
	// Next answers them.
	Next http.Handler
	// Rejected is told of every refusal. It may be nil.
	Rejected func()
}

// ServeHTTP refuses without a word about why: whoever asks has no right to know.
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

// ByPath verifies callers by the last element of the path behind base, which only they know who have read the webhook's configuration. It is
// compared in a time that does not depend on it.
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

// ByCertificate verifies callers by the common name of a certificate that the TLS server has verified.
func ByCertificate(base string, names []string) Caller {
	return func(r *http.Request) (bool, int) {
		if r.URL.Path != base {
			return false, http.StatusNotFound
		}
		verified := r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && slices.Contains(names, r.TLS.VerifiedChains[0][0].Subject.CommonName)
		return verified, http.StatusUnauthorized
	}
}

// Anybody verifies nobody, and lets all ask.
func Anybody(base string) Caller {
	return func(r *http.Request) (bool, int) { return r.URL.Path == base, http.StatusNotFound }
}
