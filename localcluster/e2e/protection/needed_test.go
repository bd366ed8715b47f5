package protection

import (
	"errors"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/rights"
)

// rightsAreNeeded reports the rights for its own certificates that the webhook did not need in all tests (U-11).
// Package nodescheduling does so for the rights to judge.
func rightsAreNeeded(g *placingtest.Guarded) error {
	inside, everywhere, err := charts.WebhookCertificateRules()
	use := rights.Use{}
	if err := errors.Join(err, use.Add(g.Cluster.AuditLog(), home, "joiner-webhook")); err != nil {
		return err
	}
	return rights.AllNeeded(use, home, nil, inside, everywhere)
}
