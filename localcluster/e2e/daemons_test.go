package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

const limitRange = `
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: default}
spec: {limits: [{type: Container, defaultRequest: {cpu: '1'}, default: {cpu: '2'}}]}
`

// agent is a DaemonSet that tolerates everything; resources is one line.
func agent(resources string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: example.invalid/main, resources: {%s}}]
`, resources)
}

const apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
	"{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}"

// P-06: daemons count with the requests that their pods get. Nodes for pods beside them are right at the first try.
func TestDaemonsCountWithWhatTheirPodsAskFor(t *testing.T) {
	t.Parallel()
	for name, daemon := range map[string]string{
		"limits without requests": agent("limits: {cpu: '1'}"),
		"a LimitRange":            limitRange + agent(""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.apply(daemon)
			r.apply(kwokPool("default", amd64Linux, ""))
			r.apply(deployment("web", 3, "{cpu: 1500m}", apart))
			most := 0
			r.eventually(2*soon, "three running pods", func(ctx context.Context) (bool, string, error) {
				claims, err := r.claims(ctx)
				most = max(most, len(claims))
				pods, listErr := r.pods(ctx, client.MatchingLabels{"app": "web"})
				running := 0
				for _, pod := range pods {
					if pod.Status.Phase == corev1.PodRunning {
						running++
					}
				}
				if err == nil {
					err = listErr
				}
				return running == 3, fmt.Sprintf("%d pods run, %d NodeClaims", running, len(claims)), err
			})
			if most != 3 {
				t.Errorf("there were %d NodeClaims for 3 pods that want a node each", most)
			}
		})
	}
}

// noBindings denies the binding of web's pods. The test's controller may change a node late, and the pod must not be
// bound there by then. It also denies a ConfigMap, which shows that it is in force.
const noBindings = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-bindings}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding, configmaps]}]
  validations: [{expression: "!object.metadata.name.startsWith('web-')", message: "not here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-bindings}
spec: {policyName: no-bindings, validationActions: [Deny]}
`

// P-35: a user's controller taints each new node, which nobody can foresee. Few nodes are launched. Joiner says why,
// and when the next one comes; it comes then and not before. It is the same when the nodes never initialize.
func TestNodesThatHelpNobodyAreNotBoughtWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]string{
		"ready":             "",
		"never initialized": "\nstartupTaints: [{key: example.com/stays, effect: NoSchedule}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			helpNobody(newRig(t, nil), template)
		})
	}
}

// helpNobody makes a pod wait whose nodes, once launched, no pod can use. template has further lines of the nodes'
// template.
func helpNobody(r *testRig, template string) {
	r.t.Helper()
	r.apply(noBindings)
	r.eventually(soon, "bindings to be denied", func(ctx context.Context) (bool, string, error) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-probe", Namespace: "default"}}
		err := r.Client.Create(ctx, probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "no-bindings"), fmt.Sprint(err), nil
	})
	film := r.film()
	r.apply(kwokPool("default", amd64Linux+template, ""))
	r.apply(deployment("web", 1, "{cpu: 1500m}", ""))
	var message string
	tainted := map[types.UID]bool{} // a node that comes again has its name again
	r.eventually(2*soon, "the condition LaunchesInVain", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		for _, node := range nodes {
			if tainted[node.UID] {
				continue
			}
			fresh := node.DeepCopy()
			fresh.Spec.Taints = append(fresh.Spec.Taints,
				corev1.Taint{Key: "example.com/surprise", Effect: corev1.TaintEffectNoSchedule})
			tainted[node.UID] = r.Client.Update(ctx, fresh) == nil
		}
		var pool karpenterv1.NodePool
		if getErr := r.Client.Get(ctx, client.ObjectKey{Name: "default"}, &pool); err == nil {
			err = getErr
		}
		status, _, text := conditionOf(pool.Status.Conditions, karpenterv1.ConditionTypeLaunchesInVain)
		message = text
		return status == "True" && strings.Contains(text, "2 rounds of nodes for pods such as default/web-"),
			fmt.Sprintf("%d nodes, condition %q: %s", len(nodes), status, text), err
	})
	_, text, _ := strings.Cut(message, "the next one is launched after ")
	next, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.t.Fatalf("%q: want it to end with the time of the next launch: %v", message, err)
	}
	var third time.Time
	film.until(later, "a third node", func(now *picture) bool {
		if len(now.nodes) < 3 {
			return false
		}
		third = now.nodes[2].GetCreationTimestamp().Time
		return true
	})
	if third.Before(next) {
		r.t.Errorf("the third node came at %s; it was to come after %s", third.UTC(), next)
	}
}
