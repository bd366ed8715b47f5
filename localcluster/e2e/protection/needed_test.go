package protection

import (
	"errors"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/rights"
)

// rightsAreNeeded says which rights for certificates of its own the webhook did not need in all tests (U-11). Those to
// judge are in package nodescheduling.
func rightsAreNeeded(g *placingtest.Guarded) error {
	inside, everywhere, err := charts.WebhookCertificateRules()
	use := rights.Use{}
	if err := errors.Join(err, use.Add(g.Cluster.AuditLog(), home, "joiner-webhook")); err != nil {
		return err
	}
	return rights.AllNeeded(use, home, nil, inside, everywhere)
}
