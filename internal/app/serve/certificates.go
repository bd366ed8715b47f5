package serve

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// ExpiryMetric tells when what is shown ends, for an alert on a renewal that does not go on; 0 while there is nothing.
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

// CertificateStepWithin bounds one step of a keeper of certificates that live long. A busy API server takes more than ten seconds
// to check a large CustomResourceDefinition, and a write that is given up has to begin anew.
const CertificateStepWithin = 30 * time.Second

// Stepped are certificates that are kept new by steps.
type Stepped interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle is what clients are to trust.
	Bundle() []byte
	Step(context.Context, time.Time) (certificate.Change, error)
}

// KeptCertificates makes the steps, in every replica.
type KeptCertificates struct {
	Stepped
	Every  time.Duration
	Within time.Duration // bounds one step
	Log    logr.Logger
}

// OwnCertificates are those that a webhook makes itself.
type OwnCertificates struct {
	KeptCertificates
	keeper *certificate.Keeper
}

// NewOwnCertificates prepares certificates that the process makes itself.
func NewOwnCertificates(config certificate.Config, log logr.Logger) (OwnCertificates, error) {
	keeper, err := certificate.NewKeeper(config)
	return OwnCertificates{KeptCertificates{Stepped: keeper, Every: config.Terms.Every(),
		Within: min(CertificateStepWithin, config.Terms.Within()), Log: log}, keeper}, err
}

// Ready implements certificates.
func (o OwnCertificates) Ready() bool { return o.keeper.Ready() }

// Tokens are those that callers may end the path with.
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

// step makes one step, and logs a failure that was not said last.
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
