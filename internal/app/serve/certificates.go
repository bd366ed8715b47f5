package serve

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// ExpiryMetric returns a gauge of when the served certificate ends, for an alert on a stuck renewal; 0 while there is
// none.
func ExpiryMetric(name string, shown interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name, Help: "When the certificate that clients are shown ends, in seconds since 1970.",
	}, func() float64 {
		if served, err := shown.GetCertificate(nil); err == nil && served.Leaf != nil {
			return float64(served.Leaf.NotAfter.Unix())
		}
		return 0
	})
}

// CertificateStepWithin bounds one step of a keeper of long-lived certificates. A busy API server takes more than ten
// seconds to check a large CustomResourceDefinition, and a cancelled write has to start over.
const CertificateStepWithin = 30 * time.Second

// Stepped are certificates that are renewed by steps.
type Stepped interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle returns the CA bundle for clients.
	Bundle() []byte
	Step(context.Context, time.Time) (certificate.Change, error)
}

// KeptCertificates runs the steps, in every replica.
type KeptCertificates struct {
	Stepped
	Every  time.Duration
	Within time.Duration // bounds one step
	Log    logr.Logger
}

// OwnCertificates are certificates that a webhook makes itself.
type OwnCertificates struct {
	KeptCertificates
	keeper *certificate.Keeper
}

// NewOwnCertificates prepares certificates that the process will make itself.
func NewOwnCertificates(config certificate.Config, log logr.Logger) (OwnCertificates, error) {
	keeper, err := certificate.NewKeeper(config)
	return OwnCertificates{KeptCertificates{Stepped: keeper, Every: config.Terms.Every(),
		Within: min(CertificateStepWithin, config.Terms.Within()), Log: log}, keeper}, err
}

// Ready implements certificates.
func (o OwnCertificates) Ready() bool { return o.keeper.Ready() }

// Tokens returns the tokens that callers may put at the end of the path.
func (o OwnCertificates) Tokens() []string { return o.keeper.Tokens() }

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (KeptCertificates) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k KeptCertificates) Start(ctx context.Context) error {
	ticks := time.NewTicker(k.Every)
	defer ticks.Stop()
	said := ""
	for {
		said = k.step(ctx, said)
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// step runs one step, and logs a failure unless it equals the last one logged. It returns that failure.
func (k KeptCertificates) step(ctx context.Context, said string) string {
	bounded, cancel := context.WithTimeout(ctx, k.Within)
	defer cancel()
	change, err := k.Step(bounded, time.Now())
	if change != "" {
		k.Log.Info("certificates", "change", change)
	}
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if text := OneLine(err); text != said {
		k.Log.Error(err, "certificates cannot be kept; what is served stays")
		return text
	}
	return said
}
