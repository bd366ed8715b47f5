package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

// Authentication is how callers show that they are API servers configured with this webhook.
type Authentication string

// Values of --authentication.
const (
	// ByPath: by the last element of the path, which is in the webhook's configuration only.
	ByPath Authentication = "Path"
	// ByCertificate: by a certificate of an authority, with one of some names.
	ByCertificate Authentication = "ClientCertificate"
	// Unverified: not at all. No events are written then.
	Unverified Authentication = "None"
)

// tokenForm matches a valid token: 32 random bytes are 43 of these characters.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{32,256}$`)

// validateCallers checks the flags about who may call.
func (c Config) validateCallers() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch c.Authentication {
	case ByPath:
		if c.OwnCertificates.CertSecretName == "" && c.PathTokenFile == "" {
			fault(
				"--path-token-file is missing: want the path of a file with the last element of the path by which the API server calls, "+
					"or --cert-secret-name, or another --authentication than %s", ByPath)
		}
		if c.OwnCertificates.CertSecretName != "" && c.PathTokenFile != "" {
			fault(
				"--path-token-file is %q beside --cert-secret-name: with certificates of its own the webhook keeps the path",
				c.PathTokenFile)
		}
	case ByCertificate:
		if c.ClientCAFile == "" {
			fault("--client-ca-file is missing: want the authority of the certificates of --authentication=%s",
				ByCertificate)
		}
		if len(c.ClientNames) == 0 {
			fault("--client-names is missing: want the common names of the certificates of --authentication=%s",
				ByCertificate)
		}
	case Unverified:
	default:
		fault("--authentication is %q: want %s, %s or %s", c.Authentication, ByPath, ByCertificate, Unverified)
	}
	if c.Authentication != ByCertificate && (c.ClientCAFile != "" || len(c.ClientNames) > 0) {
		fault("--client-ca-file and --client-names are for --authentication=%s, and it is %q", ByCertificate,
			c.Authentication)
	}
	if c.Authentication != ByPath && c.PathTokenFile != "" {
		fault("--path-token-file is for --authentication=%s, and it is %q", ByPath, c.Authentication)
	}
	return errors.Join(faults...)
}

// verifier returns the check of callers that the flags name. shown are the certificates; if they are the webhook's
// own, they also hold tokens.
func (c Config) verifier(shown certificates, log logr.Logger) (webhook.Caller, error) {
	switch c.Authentication {
	case ByCertificate:
		return webhook.ByCertificate(Path, c.ClientNames), nil
	case Unverified:
		return webhook.Anybody(Path), nil
	}
	if own, is := shown.(interface{ Tokens() []string }); is && c.PathTokenFile == "" {
		return webhook.ByPath(Path, own.Tokens), nil
	}
	tokens, err := openTokens(c.PathTokenFile, log)
	if err != nil {
		return nil, err
	}
	return webhook.ByPath(Path, tokens.get), nil
}

// openTokens opens a file of tokens, one on each line. All are accepted, so that a token can be renewed: add the new
// one beside the old one, then put it into the configuration, and then remove the old one.
func openTokens(path string, log logr.Logger) (*file[[]string], error) {
	return openFile(func() ([]string, error) { return readTokens(path) }, log)
}

// readTokens reads and checks the lines of a file. Its errors show no token.
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
			return nil, fmt.Errorf(
				"--path-token-file %s: line %d is no token: want 32 to 256 letters, digits, - and _", path, i+1)
		}
		tokens = append(tokens, line)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("--path-token-file %s has no token: want 32 to 256 letters, digits, - and _ on a line",
			path)
	}
	return tokens, nil
}

// ExpiryMetric is the name of the metric of when the webhook's certificate ends.
const ExpiryMetric = "joiner_webhook_certificate_expiry_timestamp_seconds"

// Rejections counts refused callers. It has no labels, since callers would choose their values.
func Rejections() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "joiner_webhook", Name: "rejected_total",
		Help: "Requests that showed neither the path nor the certificate of an API server, and were not answered."})
}

// handler lets only API servers call next, and counts the other callers.
func (c Config) handler(verify webhook.Caller, next http.Handler, rejected prometheus.Counter) http.Handler {
	return webhook.Callers{Verify: verify, Next: next, Rejected: rejected.Inc}
}
