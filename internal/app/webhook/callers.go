package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

// Authentication is how callers show that they are API servers which were told of this webhook.
type Authentication string

// The ways.
const (
	// ByPath: by the last element of the path, which is in the webhook's configuration only.
	ByPath Authentication = "Path"
	// ByCertificate: by a certificate of an authority, with one of some names.
	ByCertificate Authentication = "ClientCertificate"
	// Unverified: not at all. No events are written then.
	Unverified Authentication = "None"
)

// tokenForm is what a token in a file may be: 32 random bytes are 43 of these signs.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{32,256}$`)

// validateCallers checks the flags that say who may ask.
func (c Config) validateCallers() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch c.Authentication {
	case ByPath:
		if c.OwnCertificates.CertSecretName == "" && c.PathTokenFile == "" {
			fault("--path-token-file is missing: want the path of a file with the last element of the path by which the API server calls, "+
				"or --cert-secret-name, or another --authentication than %s", ByPath)
		}
		if c.OwnCertificates.CertSecretName != "" && c.PathTokenFile != "" {
			fault("--path-token-file is %q beside --cert-secret-name: with certificates of its own the webhook keeps the path", c.PathTokenFile)
		}
	case ByCertificate:
		if c.ClientCAFile == "" {
			fault("--client-ca-file is missing: want the authority of the certificates of --authentication=%s", ByCertificate)
		}
		if len(c.ClientNames) == 0 {
			fault("--client-names is missing: want the common names of the certificates of --authentication=%s", ByCertificate)
		}
	case Unverified:
	default:
		fault("--authentication is %q: want %s, %s or %s", c.Authentication, ByPath, ByCertificate, Unverified)
	}
	if c.Authentication != ByCertificate && (c.ClientCAFile != "" || len(c.ClientNames) > 0) {
		fault("--client-ca-file and --client-names are for --authentication=%s, and it is %q", ByCertificate, c.Authentication)
	}
	if c.Authentication != ByPath && c.PathTokenFile != "" {
		fault("--path-token-file is for --authentication=%s, and it is %q", ByPath, c.Authentication)
	}
	return errors.Join(faults...)
}

// verifier makes the way in that the flags name. Shown are the certificates, which know tokens where they are the webhook's own.
func (c Config) verifier(shown certificates) (webhook.Caller, error) {
	switch c.Authentication {
	case ByCertificate:
		return webhook.ByCertificate(Path, c.ClientNames), nil
	case Unverified:
		return webhook.Anybody(Path), nil
	}
	if own, is := shown.(interface{ Tokens() []string }); is && c.PathTokenFile == "" {
		return webhook.ByPath(Path, own.Tokens), nil
	}
	file, err := openTokens(c.PathTokenFile)
	if err != nil {
		return nil, err
	}
	return webhook.ByPath(Path, file.tokens), nil
}

// tokenFile are the tokens of a file, one on each line. All are accepted, so that one can be renewed: put the new one beside the old one, then
// into the configuration, and then take the old one away.
type tokenFile struct {
	path  string
	known atomic.Pointer[knownTokens]
}

// knownTokens is what was read of a file, and when.
type knownTokens struct {
	tokens []string
	at     time.Time
}

// tokensEvery is how long a token that was put into the file, or taken away, may wait.
const tokensEvery = 10 * time.Second

func openTokens(path string) (*tokenFile, error) {
	tokens, err := readTokens(path)
	if err != nil {
		return nil, err
	}
	file := &tokenFile{path: path}
	file.known.Store(&knownTokens{tokens, time.Now()})
	return file, nil
}

// tokens are those of the file as it was a few seconds ago; while it cannot be read, those before.
func (f *tokenFile) tokens() []string {
	known := f.known.Load()
	if now := time.Now(); now.Sub(known.at) > tokensEvery {
		next := &knownTokens{known.tokens, now}
		if tokens, err := readTokens(f.path); err == nil {
			next.tokens = tokens
		}
		if f.known.CompareAndSwap(known, next) {
			known = next
		}
	}
	return known.tokens
}

// readTokens reads and checks the lines of a file. The error does not show them.
func readTokens(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--path-token-file: %w", err)
	}
	var tokens []string
	for i, line := range strings.Split(string(content), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !tokenForm.MatchString(line) {
			return nil, fmt.Errorf("--path-token-file %s: line %d is no token: want 32 to 256 letters, digits, - and _", path, i+1)
		}
		tokens = append(tokens, line)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("--path-token-file %s has no token: want 32 to 256 letters, digits, - and _ on a line", path)
	}
	return tokens, nil
}

// ExpiryMetric is the name of the metric that tells when the webhook's certificate ends.
const ExpiryMetric = "joiner_webhook_certificate_expiry_timestamp_seconds"

// Rejections counts who was refused. It has no labels: callers would choose them.
func Rejections() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "joiner_webhook", Name: "rejected_total",
		Help: "Requests that showed neither the path nor the certificate of an API server, and were not answered."})
}

// handler lets API servers ask, and counts the others.
func (c Config) handler(verify webhook.Caller, next http.Handler, rejected prometheus.Counter) http.Handler {
	return webhook.Callers{Verify: verify, Next: next, Rejected: rejected.Inc}
}
