package nodescheduling

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// N13 to N32, N36, N56, N59: creates of pods. What is denied is not stored.
func TestPodsThatAreCreated(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.ExpectAll(t, placing.Created())
		stored := &corev1.PodList{}
		if err := g.Client.List(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		for _, pod := range stored.Items {
			for _, c := range placing.Created() {
				if !strings.HasPrefix(c.Want, "allow") && strings.Contains(c.Line, pod.Namespace+"/"+pod.Name+" ") {
					t.Errorf("pod %s was denied and is stored", pod.Name)
				}
			}
		}
	})
}

// N28, N45 to N53, H7, F1, F2, F8: both paths of a binding, and the override, which can only come with a create. N48:
// a listed scheduler places only what may be placed.
func TestBindings(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.ExpectAll(t, placing.Waiting())
		g.ExpectAll(t, placing.Bound())
		g.Set(t, "", "batch/second")
		g.Eventually(t, "allow", "sa:batch/second bind ops/d to=cp1 dry-run")
		g.Expect(t, "deny ControlPlane/Binding", "sa:batch/second bind app/plain to=cp1")
		g.Expect(t, "allow", "sa:batch/second bind ops/d to=cp1")
	})
}

// N37 to N39: updates of pods that wait.
func TestPodsThatAreChanged(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.ExpectAll(t, placing.Waiting())
		g.ExpectAll(t, placing.Changed())
	})
}

// N38, N39, N41, N43, N62, F9: pods that came while the mode was Disable stay. Changes that do not concern their nodes
// are allowed: labels, images, finalizers, status, ephemeral containers, resize. They can be evicted, entered and
// deleted.
func TestPodsThatWereThereBefore(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Set(t, configv1.Disable)
		g.Eventually(t, "allow", dry)
		for _, line := range []string{"app/old need=name=cp1", "app/old-gated gated need=name=cp1",
			"ops/old-gated gated need=name=cp1", "app/old-there node=cp1"} {
			g.Expect(t, "allow", "alice create pod "+line)
		}
		g.Set(t, configv1.Enable)
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.ExpectAll(t, placing.Old())
		g.touch(t, "old-there")
		if err := g.Client.Get(t.Context(), client.ObjectKey{Namespace: "app", Name: "old"},
			&corev1.Pod{}); err != nil {
			t.Error(err)
		}
	})
}

// touch makes changes to a pod of app that place nothing, as alice, and deletes it in the end.
func (g guarded) touch(t *testing.T, name string) {
	t.Helper()
	config, err := g.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{placing.People}}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods := clients.CoreV1().Pods("app")
	container := ""
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		container = pod.Spec.Containers[0].Name
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "look", Image: "i", ImagePullPolicy: corev1.PullAlways,
				TerminationMessagePolicy: corev1.TerminationMessageReadFile}}}
		_, err = pods.UpdateEphemeralContainers(t.Context(), name, pod, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Errorf("an ephemeral container: %v", err)
	}
	resized := fmt.Sprintf(`{"spec": {"containers": [{"name": %q, "resources": {"requests": {"cpu": "1m"}}}]}}`,
		container)
	if _, err := pods.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(resized), metav1.PatchOptions{},
		"resize"); err != nil && strings.Contains(err.Error(), "NodeSchedulingPolicy") {
		t.Errorf("a resize: %v", err)
	}
	// Our kubelets let nobody in: what counts is who refuses.
	exec := clients.CoreV1().RESTClient().Post().Namespace("app").Resource("pods").Name(name).SubResource("exec")
	err = exec.Param("command", "true").Param("stdout", "true").Do(t.Context()).Error()
	if err != nil && strings.Contains(err.Error(), "NodeSchedulingPolicy") {
		t.Errorf("exec: %v", err)
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "app"}}
	eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := pods.EvictV1(t.Context(), eviction); err != nil {
		t.Errorf("an eviction: %v", err)
	}
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}

// N33, H15: templates are not refused, and their authors are warned.
func TestTemplatesAreWarnedAbout(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) { g.ExpectAll(t, placing.Templates()) })
}

// N54, N55, N57: labels of nodes count as they are now. A brand-new node is known. A running pod stays.
func TestLabelsOfNodesAreLive(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		for i := range 5 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fresh%d", i),
				Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
			if err := g.Client.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			g.Expect(t, "deny ControlPlane/NodeName", "alice create pod app/- node="+node.Name+" dry-run")
			if err := g.Client.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
		const line = "alice create pod app/- node=w1 dry-run"
		g.Expect(t, "allow", line)
		g.Expect(t, "allow", "alice create pod app/n54 node=w1")
		g.must(t, "label", "node", "w1", "node-role.kubernetes.io/control-plane=")
		g.Eventually(t, "deny ControlPlane/NodeName", line)
		if err := g.Client.Get(t.Context(), client.ObjectKey{Namespace: "app", Name: "n54"},
			&corev1.Pod{}); err != nil {
			t.Error(err)
		}
		g.must(t, "label", "node", "w1", "node-role.kubernetes.io/control-plane-")
		g.Eventually(t, "allow", line)
	})
}

// N21, N64: what kubectl prints: pod, namespace, group, node, how it aims, which half is missing, and the remedy.
func TestN64_WhatUsersRead(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		for spec, wants := range map[string][]string{
			`, "nodeName": "cp1"`: {`Error from server (Forbidden)`,
				`[ControlPlane/NodeName]: pod "said" in namespace "app" is not allowed on the nodes of group ` +
					`"ControlPlane": its nodeName is "cp1"`,
				`User "alice" is not authorized`, `namespace "app" is not authorized`,
				`add "alice" and "app/default" to authorizedUsers`},
			`, "tolerations": [{"operator": "Exists"}]`: {`[ControlPlane/Toleration]`,
				`required node affinity node-role.kubernetes.io/control-plane DoesNotExist`},
		} {
			output, err := g.Kubectl(t.Context(), podManifest("said", spec), as("create", "-f", "-")...)
			for _, want := range wants {
				if err == nil || !strings.Contains(output, want) {
					t.Errorf("kubectl says %q, want %q (%v)", output, want, err)
				}
			}
		}
	})
}

// N3, N36, N40, N65, N66, N67: the audit log, the counts, and the events. Events come in the mode Inform, about the
// namespace or the controller, and not for a dry run or for what is denied.
func TestWhatAuditorsAndMetricsSee(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Expect(t, "deny ControlPlane/NodeName", "alice create pod app/audited node=cp1")
		g.Expect(t, "allow", "system:admin create pod ops/authorized node=cp1")
		g.Expect(t, "deny ControlPlane/NodeName", dry)
		g.Set(t, configv1.Inform)
		g.Eventually(t, "warn ControlPlane/NodeName", "alice create pod web/- node=cp1 dry-run")
		g.Expect(t, "warn ControlPlane/NodeName", "alice create pod app/informed node=cp1")
		g.Expect(t, "warn ControlPlane/UnknownNode", "alice create pod app/- node=cp9 dry-run") // N56
		eventuallySees(t, "audit log", func() (string, error) {
			log, err := os.ReadFile(g.Cluster.AuditLog())
			return string(log), err
		}, annotation("decision", "deny"), annotation("decision", "inform"), annotation("decision", "authorized"),
			annotation("group", "ControlPlane"), annotation("actor-authorized", "false"),
			annotation("pod-authorized", "false"), annotation("reason", "NodeName"))
		counted := func(decision, dryRun, mode string) string {
			return fmt.Sprintf(
				`node_scheduling_policy_decisions_total{decision=%q,dry_run=%q,group="ControlPlane",mode=%q,`+
					`reason="NodeName",resource="pods"}`,
				decision, dryRun, mode)
		}
		eventuallySees(t, "metrics", func() (string, error) { return g.Metrics(t.Context()) },
			counted("deny", "false", "Enable"), counted("deny", "true", "Enable"), counted("inform", "true", "Inform"),
			counted("inform", "false", "Inform"),
			`node_scheduling_policy_group_mode{group="ControlPlane",mode="Inform"} 1`,
			"node_scheduling_policy_scheduler_read_timestamp_seconds")
		seen := eventuallySees(t, "events", func() (string, error) {
			return g.Kubectl(t.Context(), "", "get", "events", "--all-namespaces", "-o",
				`jsonpath={range .items[*]}{.involvedObject.name} {.reason} {.message}{"\n"}{end}`)
		}, `app NodeSchedulingPolicyInform NodeSchedulingPolicy [ControlPlane/NodeName]: pod "informed"`)
		for _, never := range []string{"web NodeSchedulingPolicyInform", `"audited"`} {
			if strings.Contains(seen, never) {
				t.Errorf("there is an event with %s", never)
			}
		}
	})
}

// annotation returns how the audit log writes what the policy says about a request, through either door.
func annotation(key, value string) string {
	return fmt.Sprintf(`"nodeschedulingpolicy.scheduling.openshift.io/%s":%q`, key, value)
}
