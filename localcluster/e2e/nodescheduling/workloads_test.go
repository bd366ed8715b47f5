package nodescheduling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// there chooses the control plane and tolerates its taint.
const there = `, "nodeSelector": {"node-role.kubernetes.io/control-plane": ""}, "tolerations": [{"operator": "Exists"}]`

// template returns the pod template of a workload of this name, with a further piece of its spec.
func template(name, spec string) string {
	return fmt.Sprintf(
		`{"metadata": {"labels": {"app": %q}}, "spec": {"containers": [{"name": "main", "image": "image"}]%s}}`, name,
		spec)
}

// workload returns the manifest of a workload of a kind whose controller makes pods.
func workload(kind, namespace, spec string) string {
	name := strings.ToLower(kind)
	of := template(name, spec)
	selector := fmt.Sprintf(`"selector": {"matchLabels": {"app": %q}}, "template": `, name)
	job := strings.TrimSuffix(of, "}}") + `, "restartPolicy": "Never"}}`
	body := map[string]string{
		"Deployment": selector + of, "ReplicaSet": selector + of, "DaemonSet": selector + of,
		"StatefulSet":           `"serviceName": "x", ` + selector + of,
		"ReplicationController": `"template": ` + of, "Job": `"template": ` + job,
		"CronJob": `"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": ` + job + `}}`,
	}[kind]
	version := map[string]string{"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}[kind]
	if version == "" {
		version = "apps/v1"
	}
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q, "namespace": %q}, "spec": {%s}}`,
		version, kind, name, namespace, body)
}

// where returns the nodes of a workload's pods, sorted, as soon as there are as many as wanted or the time is over.
func (g guarded) where(t *testing.T, namespace, app string, wanted int, limit time.Duration) []string {
	t.Helper()
	var nodes []string
	for began := time.Now(); time.Since(began) < limit; time.Sleep(poll) {
		pods, err := g.Clients.CoreV1().Pods(namespace).List(t.Context(),
			metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			t.Fatal(err)
		}
		nodes = nil
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
		if len(nodes) >= wanted {
			break
		}
	}
	slices.Sort(nodes)
	return nodes
}

// daemonIsOn kicks a DaemonSet until one of its pods has a node, and returns the nodes of its pods. The controller
// goes through the nodes in the order of a map and ends a round at its first refusal. The pause before the next round
// doubles, up to a quarter of an hour. With two nodes and bad luck, the map begins with cp1 in seven rounds of eight.
// A change of the object begins a round at once, and there are a hundred changes.
func (g guarded) daemonIsOn(t *testing.T, namespace, name string) []string {
	t.Helper()
	var nodes []string
	for began := time.Now(); time.Since(began) < workloadsWithin && len(nodes) == 0; {
		kick := fmt.Appendf(nil, `{"metadata": {"annotations": {"round": %q}}}`, time.Since(began))
		if _, err := g.Clients.AppsV1().DaemonSets(namespace).Patch(t.Context(), name, types.MergePatchType, kick,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		nodes = g.where(t, namespace, name, 1, 300*time.Millisecond)
	}
	return nodes
}

// told waits for an event of the namespace with both texts.
func (g guarded) told(t *testing.T, reason, text string) {
	t.Helper()
	var seen string
	for began := time.Now(); time.Since(began) < workloadsWithin; time.Sleep(poll) {
		var err error
		seen, err = g.Kubectl(t.Context(), "", "get", "events", "--namespace=app", "--field-selector=reason="+reason,
			"-o", `jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name}: {.message}{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(seen, "\n") {
			if strings.Contains(line, text) && strings.Contains(line, "NodeSchedulingPolicy [ControlPlane/") {
				return
			}
		}
	}
	t.Errorf("no event %s about %s with the policy's text; there are:\n%s", reason, text, seen)
}

// N33, N64, X-11: no kind of workload whose template aims at a protected node gets a pod there, and its controller
// says why. The Job of a CronJob is made by hand: nobody waits for its minute.
func TestX11_NoWorkloadGetsThere(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		kinds := map[string]string{
			"Deployment": "ReplicaSet/deployment", "ReplicaSet": "ReplicaSet/replicaset",
			"StatefulSet":           "StatefulSet/statefulset",
			"ReplicationController": "ReplicationController/replicationcontroller", "Job": "Job/job",
			"DaemonSet": "DaemonSet/daemonset",
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			if err := g.Apply(t.Context(), workload(kind, "app", there)); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Apply(t.Context(), workload("CronJob", "app", there)); err != nil {
			t.Fatal(err)
		}
		g.must(t, "create", "job", "of-cronjob", "--from=cronjob/cronjob", "--namespace=app")
		for _, about := range append(slices.Sorted(maps.Values(kinds)), "Job/of-cronjob") {
			g.told(t, "FailedCreate", about)
		}
		g.nobodyIsThere(t)
	})
}

// N34, N35, H6: a DaemonSet for all nodes runs on the workers in any namespace, and on protected nodes if its
// namespace is authorized. No other test uses its name: the controller keeps the delay of its attempts by name, and
// another test's attempts would make the delay long.
func TestN35_DaemonSetsOfAuthorizedNamespacesRunEverywhere(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		for _, namespace := range []string{"ops", "app"} {
			manifest := strings.ReplaceAll(workload("DaemonSet", namespace,
				`, "tolerations": [{"operator": "Exists"}]`), `"daemonset"`, `"everywhere"`)
			if err := g.Apply(t.Context(), manifest); err != nil {
				t.Fatal(err)
			}
		}
		if nodes := g.where(t, "ops", "everywhere", 2, workloadsWithin); !slices.Equal(nodes, []string{"cp1", "w1"}) {
			t.Errorf("the DaemonSet of ops is on %v", nodes)
		}
		g.told(t, "FailedCreate", "DaemonSet/everywhere")
		nodes := g.daemonIsOn(t, "app", "everywhere")
		if !slices.Equal(nodes, []string{"w1"}) {
			t.Errorf("the DaemonSet of app is on %v", nodes)
		}
	})
}

// N46, X-11: a protected node without a taint attracts the scheduler, which does not know the policy. The binding is
// refused, the pod waits, and its event says why. Later an allowed node takes it.
func TestX11_TheSchedulerCannotPutItThere(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		if _, err := g.Kubectl(t.Context(), "", "taint", "node", "cp1",
			"node-role.kubernetes.io/master-"); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Kubectl(t.Context(), "", "cordon", "w1"); err != nil {
			t.Fatal(err)
		}
		restore := func() error {
			_, tainting := g.Kubectl(context.WithoutCancel(t.Context()), "", "taint", "--overwrite", "node", "cp1",
				"node-role.kubernetes.io/master=:NoSchedule")
			_, opening := g.Kubectl(context.WithoutCancel(t.Context()), "", "uncordon", "w1")
			return errors.Join(tainting, opening)
		}
		t.Cleanup(func() {
			if err := restore(); err != nil {
				t.Error(err)
			}
		})
		if err := g.Apply(t.Context(), workload("Deployment", "app", "")); err != nil {
			t.Fatal(err)
		}
		g.told(t, "FailedScheduling", "Pod/deployment-")
		g.nobodyIsThere(t)
		if err := restore(); err != nil {
			t.Fatal(err)
		}
		if nodes := g.where(t, "app", "deployment", 1, workloadsWithin); !slices.Equal(nodes, []string{"w1"}) {
			t.Errorf("the Deployment is on %v", nodes)
		}
	})
}

// N16, N17, N63: correct programs notice nothing. Workloads come up, are scaled, end, and go with their namespace.
// Agents of kube-system run everywhere, and an operator of an authorized namespace runs on the control plane.
func TestN63_OtherWorkloadsAreNotDisturbed(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		if _, err := g.Kubectl(t.Context(), "", "create", "namespace", "calm"); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job"} {
			if err := g.Apply(t.Context(), workload(kind, "calm", "")); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Apply(t.Context(),
			workload("DaemonSet", "kube-system", `, "tolerations": [{"operator": "Exists"}]`)); err != nil {
			t.Fatal(err)
		}
		if err := g.Apply(t.Context(), workload("Deployment", "ops", there)); err != nil {
			t.Fatal(err)
		}
		if nodes := g.where(t, "ops", "deployment", 1, workloadsWithin); !slices.Equal(nodes, []string{"cp1"}) {
			t.Errorf("the operator is on %v", nodes)
		}
		for _, args := range [][]string{
			{"rollout", "status", "deployment/deployment", "--namespace=calm", "--timeout=30s"},
			{"rollout", "status", "statefulset/statefulset", "--namespace=calm", "--timeout=30s"},
			{"rollout", "status", "daemonset/daemonset", "--namespace=calm", "--timeout=30s"},
			{"wait", "--for=condition=Complete", "job/job", "--namespace=calm", "--timeout=30s"},
			{"rollout", "status", "daemonset/daemonset", "--namespace=kube-system", "--timeout=30s"},
			{"scale", "deployment/deployment", "--namespace=calm", "--replicas=3"},
			{"rollout", "status", "deployment/deployment", "--namespace=calm", "--timeout=30s"},
			{"rollout", "restart", "deployment/deployment", "--namespace=calm"},
			{"rollout", "status", "deployment/deployment", "--namespace=calm", "--timeout=30s"},
			{"delete", "namespace", "calm", "--timeout=90s"},
			{"delete", "daemonset/daemonset", "--namespace=kube-system"},
		} {
			if out, err := g.Kubectl(t.Context(), "", args...); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	})
}
