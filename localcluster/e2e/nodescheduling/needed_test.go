package nodescheduling

import (
	"errors"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/rights"
)

const webhookUser = "joiner-webhook"

// askedFor has the requests of the webhooks of all clusters. Clusters end one after another.
var askedFor = rights.Use{}

func noteRequests(g *placingtest.Guarded) error {
	return askedFor.Add(g.Cluster.AuditLog(), webhookUser, webhookUser)
}

// rightsAreNeeded reports the rights of the webhook that no request of all tests needed (U-11). Package protection
// does so for those for certificates of its own.
func rightsAreNeeded(g *placingtest.Guarded) error {
	policy, err := charts.Files().ReadFile(charts.Webhook + "/rules/policy.yaml")
	override, err2 := charts.Files().ReadFile(charts.Webhook + "/rules/override.yaml")
	authorizer, err3 := charts.Files().ReadFile(charts.Webhook + "/rules/authorizer.yaml")
	if err := errors.Join(err, err2, err3, noteRequests(g)); err != nil {
		return err
	}
	return rights.AllNeeded(askedFor, webhookUser, spare(), policy, override, authorizer)
}

// spare returns the rights that no request of these tests needs, each with the reason.
func spare() map[rights.Right]string {
	const (
		listed = rights.ByChance + "an API server is asked for lists where a watch that begins with one fails"
		owner  = "asked for as a ReplicaSet is, when such an object owns the pod of an event: TestA15_EventsAreAboutWhatExists"
	)
	return map[rights.Right]string{
		"list nodes": listed, "list namespaces": listed,
		"get daemonsets.apps": owner, "get statefulsets.apps": owner, "get jobs.batch": owner,
		"get replicationcontrollers": owner,
	}
}
