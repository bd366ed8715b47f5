package nodescheduling

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// automaticPolicy is the policy of the scripts, except that the door writes the annotation of the override, and
// administrators are a group too.
var automaticPolicy = strings.NewReplacer(`"system:admin"]`, `"system:admin", "group:system:cluster-admins"]`,
	"emergencyOverride: Enable", "emergencyOverride: Automatic").
	Replace(placing.Policy)

// linux adds to the scripts' nodes the label by which tools choose the operating system.
var linux = strings.NewReplacer("kubernetes.io/hostname: cp1,",
	"kubernetes.io/hostname: cp1, kubernetes.io/os: linux,", "kubernetes.io/hostname: w1}",
	"kubernetes.io/hostname: w1, kubernetes.io/os: linux}").Replace(placing.Nodes)

// forged is another's mutating policy. On every pod of a namespace it writes what our policy would write.
const forged = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: forged}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: web}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{annotations:
        {"scheduling.openshift.io/emergency-override": "automatic: " + request.userInfo.username}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: forged}
spec: {policyName: forged}
`

// as returns the clients of a user with the rights of placing.People.
func (g guarded) as(t *testing.T, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	admin, err := g.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append([]string{"system:authenticated"},
		groups...)}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// temporary makes a namespace whose name the API server chooses, and waits until pods can run there.
func (g guarded) temporary(t *testing.T, prefix string) string {
	t.Helper()
	made, err := g.Clients.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventuallySees(t, "service account of "+made.Name, func() (string, error) {
		found, err := g.Clients.CoreV1().ServiceAccounts(made.Name).Get(t.Context(), "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return found.Name, err
	}, "default")
	return made.Name
}

// tool is a pod as a tool of administrators sends it (U15), and the prefix of the namespace that the tool makes.
type tool struct {
	name, prefix, refusal string
	pod                   corev1.Pod
}

// tools returns the shapes of these pods: on a named node, with the host's namespaces, or anywhere on the control
// plane.
func tools() []tool {
	privileged := true
	container := []corev1.Container{{Name: "tool", Image: "tool",
		SecurityContext: &corev1.SecurityContext{Privileged: &privileged}}}
	everything := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	debug := corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "cp1-debug-"},
		Spec: corev1.PodSpec{NodeName: "cp1", HostPID: true, HostNetwork: true,
			HostIPC: true, RestartPolicy: corev1.RestartPolicyNever, Containers: container}}
	gather := corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "must-gather-"},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			NodeSelector: map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/control-plane": ""},
			Tolerations:  everything, Containers: container}}
	copied := corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "copy-"}, Spec: corev1.PodSpec{NodeName: "cp1",
		HostPID:       true,
		RestartPolicy: corev1.RestartPolicyOnFailure, Tolerations: everything, Containers: container}}
	restart := copied.DeepCopy()
	restart.GenerateName = "restart-"
	return []tool{
		{"debug", "openshift-debug-", "NodeName", debug}, {"must-gather", "openshift-must-gather-", "Toleration",
			gather},
		{"copy-to-node", "openshift-copy-to-node-", "NodeName", copied}, {"restart-kubelet",
			"openshift-restart-kubelet-", "NodeName", *restart},
	}
}

// runs waits until a pod runs, and returns it.
func (g guarded) runs(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	err := wait.PollUntilContextTimeout(t.Context(), poll, workloadsWithin, true,
		func(ctx context.Context) (bool, error) {
			found, err := g.Clients.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			pod = found
			return pod.Status.Phase == corev1.PodRunning, nil
		})
	switch {
	case pod == nil:
		t.Fatalf("pod %s/%s: %v", namespace, name, err)
	case err != nil:
		t.Errorf("pod %s/%s is %s on %q: %v: %+v", namespace, name, pod.Status.Phase, pod.Spec.NodeName, err,
			pod.Status.Conditions)
	}
	return pod
}

// pods as oc sends them run on a control plane node if an administrator of the lists sends them; nobody else's
// do. They are audited, counted, reported and frozen like any override. Pods that need no annotation get none.
func TestA42_ToolsOfAdministratorsWork(t *testing.T) {
	for _, door := range placingtest.Doors() {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			g := beginWith(t, placingtest.Options{Door: door, Policy: automaticPolicy, World: linux,
				WithScheduler: true})
			g.EventuallyWithin(t, workloadsWithin, "warn ControlPlane/NodeName",
				"system:admin create pod tmp/- node=cp1 dry-run")
			for _, tool := range tools() {
				for user, groups := range map[string][]string{"system:admin": nil, "dora": {"system:cluster-admins"}} {
					g.administrates(t, tool, user, groups)
				}
				namespace := g.temporary(t, tool.prefix)
				_, err := g.as(t, "alice", placing.People).CoreV1().Pods(namespace).Create(t.Context(), &tool.pod,
					metav1.CreateOptions{})
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "[ControlPlane/"+tool.refusal+"]") ||
					!strings.Contains(err.Error(), `User "alice" is not authorized`) {
					t.Errorf("%s by alice: %v", tool.name, err)
				}
			}
			eventuallySees(t, "events", func() (string, error) {
				return g.Kubectl(t.Context(), "", "get", "events", "--all-namespaces",
					"--field-selector=reason=NodeSchedulingPolicyOverride", "-o", `jsonpath={.items[*].message}`)
			}, "is not authorized, for the reason in its annotation", `"automatic: `)
			g.untouched(t)
			g.Expect(t, "deny ControlPlane/NodeName", "sa:ops/default create pod tmp/- node=cp1")
			if err := g.Apply(t.Context(), forged); err != nil {
				t.Fatal(err)
			}
			g.EventuallyWithin(t, workloadsWithin, "deny ControlPlane/OverrideMisused",
				"alice create pod web/- node=cp1")
			g.Expect(t, "deny ControlPlane/OverrideMisused", "sa:ops/default create pod web/- tolerate=*")
			g.daemonStaysOff(t, g.temporary(t, "openshift-must-gather-"))
			if door == placingtest.Webhook {
				g.withoutPolicies(t)
			}
		})
	}
}

// administrates runs a tool as a user, in a namespace of its own.
func (g guarded) administrates(t *testing.T, tool tool, user string, groups []string) {
	t.Helper()
	namespace := g.temporary(t, tool.prefix)
	made, err := g.as(t, user, append(groups, placing.People)...).CoreV1().Pods(namespace).Create(t.Context(),
		&tool.pod, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("%s by %s: %v", tool.name, user, err)
		return
	}
	if why := made.Annotations[evaluator.OverrideAnnotation]; why != "automatic: "+user {
		t.Errorf("%s by %s has the annotation %q", tool.name, user, why)
	}
	if pod := g.runs(t, namespace, made.Name); pod.Spec.NodeName != "cp1" {
		t.Errorf("%s by %s is on %s", tool.name, user, pod.Spec.NodeName)
	}
	at := namespace + "/" + made.Name
	for _, line := range []string{
		"alice connect pod/exec " + at, "alice connect pod/attach " + at, "alice update pod/status " + at +
			" override=x -> no-override",
	} {
		g.Expect(t, "deny ControlPlane/OverrideTampered", line)
	}
	g.Expect(t, "allow", fmt.Sprintf("%s%s connect pod/exec %s", user, "["+strings.Join(groups, ",")+"]", at))
	eventuallySees(t, "audit log", func() (string, error) {
		log, err := os.ReadFile(g.Cluster.AuditLog())
		return string(log), err
	}, annotation("decision", "override"), annotation("override", "automatic: "+user))
	eventuallySees(t, "metrics", func() (string, error) { return g.Metrics(t.Context()) },
		fmt.Sprintf(
			`decisions_total{decision="override",dry_run="false",group="ControlPlane",mode="Enable",reason=%q,`,
			tool.refusal))
}

// untouched creates pods of an administrator that need no annotation.
func (g guarded) untouched(t *testing.T) {
	t.Helper()
	pods := map[string]corev1.PodSpec{
		"tmp/ordinary": {}, "tmp/worker": {NodeName: "w1"},
		"tmp/linux":  {NodeSelector: map[string]string{"kubernetes.io/os": "linux"}},
		"ops/listed": {NodeName: "cp1"},
	}
	for at, spec := range pods {
		namespace, name, _ := strings.Cut(at, "/")
		spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
		made, err := g.as(t, "system:admin", placing.People).CoreV1().Pods(namespace).Create(t.Context(),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
			metav1.CreateOptions{})
		if err != nil || len(made.Annotations) > 0 {
			t.Errorf("%s: %v, %v", at, made.Annotations, err)
		}
	}
}

// daemonStaysOff: must-gather makes a DaemonSet for figures of performance. A controller makes its pods, so they come
// to workers only.
func (g guarded) daemonStaysOff(t *testing.T, namespace string) {
	t.Helper()
	manifest := strings.ReplaceAll(workload("DaemonSet", namespace, `, "tolerations": [{"operator": "Exists"}]`),
		`"daemonset"`, `"performance"`)
	if err := g.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	eventuallySees(t, "events", func() (string, error) {
		return g.Kubectl(t.Context(), "", "get", "events", "--namespace", namespace,
			"--field-selector=reason=FailedCreate", "-o", `jsonpath={.items[*].message}`)
	}, "[ControlPlane/Toleration]")
	if nodes := g.daemonIsOn(t, namespace, "performance"); !slices.Equal(nodes, []string{"w1"}) {
		t.Errorf("the pods of the DaemonSet are on %v, want w1", nodes)
	}
}

// withoutPolicies removes the policies that write the annotation beside the webhook. Then administrators write it
// themselves, and nobody else gains.
func (g guarded) withoutPolicies(t *testing.T) {
	t.Helper()
	g.must(t, "delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", "node-scheduling-policy-automatic-0")
	g.EventuallyWithin(t, workloadsWithin, "deny ControlPlane/NodeName",
		"system:admin create pod tmp/- node=cp1 dry-run")
	g.ExpectAll(t, []placing.Case{
		{Want: "warn ControlPlane/NodeName", Line: "system:admin create pod tmp/- node=cp1 override=by-hand"},
		{Want: "deny ControlPlane/NodeName", Line: "alice create pod tmp/- node=cp1"},
	})
}

// with the override off administrators are refused, and the message begins with what to do. This works: the
// namespace of the user's page, with the entries and rights of that page. Whoever has only those rights debugs there
// and nowhere else.
func TestA42_AListedNamespaceIsTheOtherWay(t *testing.T) {
	manifest, entries := supportNamespace(t)
	policy := strings.NewReplacer(`"system:admin"]`, `"system:admin", `+entries+"]", "emergencyOverride: Enable",
		"emergencyOverride: Disable").Replace(placing.Policy)
	for _, door := range placingtest.Doors() {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			g := beginWith(t, placingtest.Options{Door: door, Policy: policy, World: linux, WithScheduler: true})
			g.Eventually(t, "deny ControlPlane/NodeName", dry)
			if err := g.Apply(t.Context(), manifest); err != nil {
				t.Fatal(err)
			}
			const listed = "openshift-support"
			eventuallySees(t, "service account", func() (string, error) {
				return g.Kubectl(t.Context(), "", "get", "serviceaccounts", "--namespace", listed, "-o", "name")
			}, "default")
			admin, sam := g.as(t, "system:admin", placing.People), g.as(t, "sam", "support")
			for _, tool := range tools() {
				namespace := g.temporary(t, tool.prefix)
				_, err := admin.CoreV1().Pods(namespace).Create(t.Context(), &tool.pod, metav1.CreateOptions{})
				if first := fmt.Sprint(err); !apierrors.IsForbidden(err) || !strings.Contains(first,
					"[ControlPlane/"+tool.refusal+
						"]: use an authorized namespace (oc: --to-namespace, --run-namespace)") {
					t.Errorf("%s in %s: %v", tool.name, namespace, err)
				}
				for user, clients := range map[string]kubernetes.Interface{"system:admin": admin, "sam": sam} {
					made, err := clients.CoreV1().Pods(listed).Create(t.Context(), &tool.pod, metav1.CreateOptions{})
					if err != nil {
						t.Errorf("%s by %s: %v", tool.name, user, err)
						continue
					}
					if pod := g.runs(t, listed, made.Name); pod.Spec.NodeName != "cp1" ||
						len(pod.Annotations[evaluator.OverrideAnnotation]) > 0 {
						t.Errorf("%s by %s is on %s with %v", tool.name, user, pod.Spec.NodeName, pod.Annotations)
					}
					if err := clients.CoreV1().Pods(listed).Delete(t.Context(), made.Name,
						metav1.DeleteOptions{}); err != nil {
						t.Errorf("%s by %s cannot be deleted: %v", tool.name, user, err)
					}
				}
				if _, err := sam.CoreV1().Pods(namespace).Create(t.Context(), &tool.pod,
					metav1.CreateOptions{}); !apierrors.IsForbidden(err) || strings.Contains(err.Error(),
					"NodeSchedulingPolicy") {
					t.Errorf("%s by sam in %s: %v, want a refusal of RBAC", tool.name, namespace, err)
				}
				if _, err := g.as(t, "alice", placing.People).CoreV1().Pods(listed).Create(t.Context(), &tool.pod,
					metav1.CreateOptions{}); !apierrors.IsForbidden(err) ||
					!strings.Contains(err.Error(), "[ControlPlane/"+tool.refusal+"]") {
					t.Errorf("%s by alice: %v", tool.name, err)
				}
			}
			daemon := strings.ReplaceAll(workload("DaemonSet", listed, `, "tolerations": [{"operator": "Exists"}]`),
				`"daemonset"`, `"performance"`)
			if err := g.Apply(t.Context(), daemon); err != nil {
				t.Fatal(err)
			}
			if nodes := g.where(t, listed, "performance", 2, workloadsWithin); !slices.Equal(nodes, []string{"cp1",
				"w1"}) {
				t.Errorf("the pods of the DaemonSet are on %v, want cp1 and w1", nodes)
			}
		})
	}
}

// supportNamespace returns the user's page's manifests for a namespace of tools, and its entries.
func supportNamespace(t *testing.T) (manifest, entries string) {
	t.Helper()
	content, err := os.ReadFile("../../../docs/control-plane-protection.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(content), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: openshift-support\n") {
			manifest = block
		}
		if strings.HasPrefix(block, "- namespace:openshift-support") {
			for line := range strings.Lines(block) {
				entry, _, _ := strings.Cut(strings.TrimPrefix(line, "- "), " ")
				entries += fmt.Sprintf("%q, ", strings.TrimSpace(entry))
			}
		}
	}
	if manifest == "" || entries == "" {
		t.Fatalf("the page has the manifest %q and the entries %q", manifest, entries)
	}
	return manifest, strings.TrimSuffix(entries, ", ")
}
