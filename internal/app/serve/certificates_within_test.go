package serve

import (
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// V-20: one step may take as long as the writes need on an API server under load. If certificates live very briefly it
// gets less: else the time that a step writes down would be long past.
func TestV20_AStepHasTheTimeThatItsWritesNeed(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		certificate.Lifetime: CertificateStepWithin, certificate.MinLifetime: 10 * time.Second,
		24 * time.Hour: CertificateStepWithin,
	} {
		own, err := NewOwnCertificates(certificate.Config{Terms: certificate.Terms{Name: "test", Hosts: []string{"a"},
			Lifetime: lifetime}, Store: noStore{}}, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		if own.Within != want {
			t.Errorf("certificates of %s: a step has %s, want %s", lifetime, own.Within, want)
		}
	}
}

// noStore is a Store that is never asked.
type noStore struct{ certificate.Store }
