// Package nodescheduling tests the node scheduling policy on real API servers, through both of its doors, the
// admission plugin and joiner-webhook. It tests the requests of package placing and their answers, every way to a
// protected node, and faults around them, and that correct programs are not disturbed. A test has one body, which
// runs for each door. What only one door has is in plugin_test.go and in package protection.
//
// The ids in the names are those of docs/spec/node-scheduling-policy.md. The binaries come from the environment: see
// placingtest.Start. Without them the tests fail. The policy concerns the whole cluster, so tests of one door run one
// after another.
package nodescheduling

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// workloadsWithin bounds what controllers, scheduler and fake kubelets do together.
	workloadsWithin = 30 * time.Second
	poll            = placingtest.Poll
	// dry asks whether the policy of a peopled cluster is in force.
	dry = "alice create pod app/- node=cp1 dry-run"
)

// emptyPolicy is the policy of empty clusters: ControlPlane has no mode, expressions choose Infra, and RBAC counts
// beside the lists.
const emptyPolicy = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- name: ControlPlane
  labelSelector: {matchExpressions: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}
  authorizedUsers: ["system:kube-scheduler", ops/default, "system:admin"]
- name: Infra
  labelSelector: {matchExpressions: [{key: role, operator: In, values: [infra, gpu]}, {key: zone, operator: NotIn, values: [edge]}]}
  mode: Enable
  authorizedUsers: ["system:kube-scheduler", ops/default, "system:admin"]
authorization: ListsAndRBAC
emergencyOverride: Enable
`

// guarded is a cluster of a test.
type guarded struct{ *placingtest.Guarded }

// behind is a cluster of the package behind each door.
type behind map[placingtest.Door]*shared.Thing[*placingtest.Guarded]

func behindEach(options placingtest.Options) behind {
	all := behind{}
	for _, door := range placingtest.Doors() {
		own := options // a copy for each: clusters are started when they are first asked for
		own.Door = door
		all[door] = shared.New(func(ctx context.Context) (*placingtest.Guarded, error) {
			return placingtest.Start(ctx, own)
		}, (*placingtest.Guarded).Stop)
	}
	return all
}

// The clusters of the package, two for each door.
var (
	// peopled has nodes, Scheduler and everything that makes and places pods.
	peopled = behindEach(placingtest.Options{Policy: placing.Policy, World: placing.Nodes, WithScheduler: true,
		AtEnd: noteRequests})
	// empty has an API server only, no nodes and no kind Scheduler. Kubernetes' own plugin PodTopologyLabels is off:
	// it refuses every pod while nodes cannot be listed, and would hide the policy's answer.
	empty = behindEach(placingtest.Options{Policy: emptyPolicy, Components: []cluster.Component{
		cluster.Etcd, cluster.APIServer,
	},
		Args: []string{"--disable-admission-plugins=PodTopologyLabels"}, AtEnd: rightsAreNeeded})
)

func TestMain(m *testing.M) {
	shared.Main(m, peopled[placingtest.Plugin], peopled[placingtest.Webhook], empty[placingtest.Plugin],
		empty[placingtest.Webhook])
}

// throughBothDoors runs a test on the cluster of each door, both at once.
func throughBothDoors(t *testing.T, clusters behind, body func(*testing.T, guarded)) {
	t.Helper()
	for _, door := range placingtest.Doors() {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			g := guarded{clusters[door].Get(t)}
			if g.Door != door {
				t.Fatalf("the cluster that is to be behind the %s is behind the %s", door, g.Door)
			}
			g.Clear(t)
			t.Cleanup(func() {
				g.Clear(t)
				g.ShowLog(t)
			})
			body(t, g)
		})
	}
}

// onPeopled runs a test on the clusters with nodes, once the policy of the file is in force again.
func onPeopled(t *testing.T, body func(*testing.T, guarded)) {
	t.Helper()
	throughBothDoors(t, peopled, func(t *testing.T, g guarded) {
		// The watch of Scheduler may be late. Tests list alice and the service account app/default there; the file has
		// neither. A verdict about alice alone could also come from the Scheduler of the test before, if it lists the
		// other one.
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.Eventually(t, "deny ControlPlane/NodeName", "system:admin create pod app/- node=cp1 dry-run")
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		body(t, g)
	})
}

// onEmpty runs a test on the clusters without nodes.
func onEmpty(t *testing.T, body func(*testing.T, guarded)) {
	t.Helper()
	throughBothDoors(t, empty, body)
}

// must runs kubectl as the admin.
func (g guarded) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := g.Kubectl(t.Context(), "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eventuallySees looks until it has seen everything in wants.
func eventuallySees(t *testing.T, what string, look func() (string, error), wants ...string) string {
	t.Helper()
	missing, seen := wants, ""
	for began := time.Now(); time.Since(began) < workloadsWithin && len(missing) > 0; time.Sleep(poll) {
		var err error
		if seen, err = look(); err != nil {
			t.Fatal(err)
		}
		for len(missing) > 0 && strings.Contains(seen, missing[0]) {
			missing = missing[1:]
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s: no %s in\n%s", what, missing[0], seen[max(0, len(seen)-4000):])
	}
	return seen
}
