// Package placing sends the requests of the node scheduling policy's scripts (docs/scripts.md) to a real API server,
// as the users that they name. [Rights], [Nodes] and [Namespaces] make a guarded cluster, which [Policy] guards.
// [Created], [Bound], [Changed] and the others are requests with the answers that every door must give.
package placing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

const (
	// Policy is the policy of the scripts.
	Policy = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- name: ControlPlane
  labelSelector: {matchLabels: {node-role.kubernetes.io/control-plane: ""}}
  taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}, {key: node-role.kubernetes.io/master, effect: NoSchedule}]
  mode: Enable
  authorizedUsers: ["system:kube-scheduler", kube-system/replicaset-controller, kube-system/daemon-set-controller, ops/default, "system:admin"]
emergencyOverride: Enable
`
	// People is the group of all users of the scripts. RBAC allows them everything with pods and workloads, so that
	// each denial is the policy's.
	People = "people"
	// Rights are the rights of People. They lack the verbs that `authorization: ListsAndRBAC` asks for.
	Rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: people}
rules:
- {apiGroups: ["", apps, batch, policy, config.openshift.io], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: people}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]
`
	// Nodes are the nodes of the scripts. KWOK is their kubelet, if it runs.
	Nodes = `
---
apiVersion: v1
kind: Node
metadata: {name: cp1, annotations: {kwok.x-k8s.io/node: fake}, labels: {kubernetes.io/hostname: cp1, node-role.kubernetes.io/control-plane: ""}}
spec: {taints: [{key: node-role.kubernetes.io/master, effect: NoSchedule}]}
---
apiVersion: v1
kind: Node
metadata: {name: w1, annotations: {kwok.x-k8s.io/node: fake}, labels: {kubernetes.io/hostname: w1}}
`
	// Nobody is a scheduler that does not run: pods of this package wait until a request binds them.
	Nobody = "nobody"
)

// Namespaces returns the namespaces of the scripts.
func Namespaces() []string { return []string{"ops", "app", "web", "tmp", "batch"} }

// ServiceAccounts returns the accounts that pods of the scripts run as, NAMESPACE/NAME. Without controllers nobody
// creates them.
func ServiceAccounts() []string {
	return []string{"ops/default", "app/default", "web/default", "tmp/default", "ops/unlisted"}
}

// Ask sends a request of the script language as the user that it names, with additional groups. It returns the
// policy's answer in the words of the scripts: allow, warn CODE or deny CODE; unanswered if a webhook did not answer.
// Any other failure is an error.
func Ask(ctx context.Context, admin *rest.Config, line string, groups ...string) (string, error) {
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	heard := &heard{}
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: asked.User.Name,
		Groups: slices.Concat(asked.User.Groups, groups)}
	config.WarningHandler = heard
	err = send(ctx, config, asked)
	const code = "NodeSchedulingPolicy ["
	switch {
	case err == nil:
		for _, text := range heard.texts {
			if _, rest, found := strings.Cut(text, code); found {
				return "warn " + strings.SplitN(rest, "]", 2)[0], nil
			}
		}
		return "allow", nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), code):
		_, rest, _ := strings.Cut(err.Error(), code)
		return "deny " + strings.SplitN(rest, "]", 2)[0], nil
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return "unanswered", nil
	}
	return "", fmt.Errorf("%s: %w", line, err)
}

// heard records warnings.
type heard struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }

// send executes a line, as the user of the configuration.
func send(ctx context.Context, config *rest.Config, asked schedulingtest.Asked) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var dry []string
	if asked.DryRun {
		dry = []string{metav1.DryRunAll}
	}
	switch object := asked.Object.(type) {
	case *corev1.Binding:
		path := clients.CoreV1().RESTClient().Post().Namespace(asked.Namespace)
		if asked.DryRun {
			path = path.Param("dryRun", metav1.DryRunAll)
		}
		if asked.Resource == "bindings" {
			return path.Resource("bindings").Body(object).Do(ctx).Error()
		}
		return path.Resource("pods").Name(asked.Name).SubResource("binding").Body(object).Do(ctx).Error()
	case *corev1.Pod:
		if asked.Operation == evaluator.Update {
			return update(ctx, clients, asked)
		}
		if asked.Operation == evaluator.Connect {
			return connect(ctx, clients, asked)
		}
		object.Spec.SchedulerName = Nobody
		_, err := clients.CoreV1().Pods(asked.Namespace).Create(ctx, object, metav1.CreateOptions{DryRun: dry})
		return err
	}
	return sendWorkload(ctx, config, asked, dry)
}

// connect requests to enter a pod. No kubelet of ours allows that, so only a refusal by the policy is an error.
func connect(ctx context.Context, clients kubernetes.Interface, asked schedulingtest.Asked) error {
	err := clients.CoreV1().RESTClient().Post().Namespace(asked.Namespace).Resource("pods").Name(
		asked.Name).SubResource(asked.Subresource).
		Param("command", "true").Param("stdout", "true").Do(ctx).Error()
	if apierrors.IsForbidden(err) || apierrors.IsInternalError(err) && strings.Contains(err.Error(),
		"failed calling webhook") {
		return err
	}
	return nil
}

// update adds the content of the line to the stored pod, whatever the scheduler or a kubelet has written to it in
// between.
func update(ctx context.Context, clients kubernetes.Interface, asked schedulingtest.Asked) error {
	want := asked.Object.(*corev1.Pod)
	pods := clients.CoreV1().Pods(asked.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, err := pods.Get(ctx, asked.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		stored.Labels, stored.Annotations, stored.Finalizers = want.Labels, want.Annotations, want.Finalizers
		stored.Spec.NodeSelector, stored.Spec.Affinity = want.Spec.NodeSelector, want.Spec.Affinity
		stored.Spec.SchedulingGates = want.Spec.SchedulingGates
		stored.Spec.Tolerations = append(want.Spec.Tolerations[:len(want.Spec.Tolerations):len(want.Spec.Tolerations)],
			stored.Spec.Tolerations...)
		stored.Spec.Containers[0].Image = want.Spec.Containers[0].Image
		switch asked.Subresource {
		case "status":
			_, err = pods.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
			return err
		case "ephemeralcontainers":
			stored.Spec.EphemeralContainers = append(stored.Spec.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					Name: fmt.Sprintf("look-%d", len(stored.Spec.EphemeralContainers)), Image: "i",
					ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile}})
			_, err = pods.UpdateEphemeralContainers(ctx, asked.Name, stored, metav1.UpdateOptions{})
			return err
		case "resize":
			stored.Spec.Containers[0].Resources.Requests = want.Spec.Containers[0].Resources.Requests
			_, err = pods.UpdateResize(ctx, asked.Name, stored, metav1.UpdateOptions{})
			return err
		}
		_, err = pods.Update(ctx, stored, metav1.UpdateOptions{})
		return err
	})
}

// sendWorkload creates a workload, or updates the stored one to the template of the line, whatever its controller has
// done to it in between.
func sendWorkload(ctx context.Context, config *rest.Config, asked schedulingtest.Asked, dry []string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(asked.Object)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	if err := complete(object, asked.Resource); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	version := object.GroupVersionKind().GroupVersion()
	workloads := objects.Resource(version.WithResource(asked.Resource)).Namespace(asked.Namespace)
	if asked.Operation == evaluator.Create {
		_, err = workloads.Create(ctx, object, metav1.CreateOptions{DryRun: dry})
		return err
	}
	// The version is stated, as when users edit an object. Without it the API server may first judge the update
	// against a stale cache, notice that, and judge it again: then it sends the warnings of both.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, err := workloads.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.SetResourceVersion(stored.GetResourceVersion())
		_, err = workloads.Update(ctx, object, metav1.UpdateOptions{DryRun: dry})
		return err
	})
}

// complete adds fields that the API server requires of a workload and the scripts leave out.
func complete(object *unstructured.Unstructured, resource string) error {
	spec := []string{"spec"}
	if resource == "cronjobs" {
		if err := unstructured.SetNestedField(object.Object, "0 0 1 1 *", "spec", "schedule"); err != nil {
			return err
		}
		spec = []string{"spec", "jobTemplate", "spec"}
	}
	set := func(value any, path ...string) error {
		return unstructured.SetNestedField(object.Object, value, slices.Concat(spec, path)...)
	}
	if resource == "jobs" || resource == "cronjobs" {
		return set("Never", "template", "spec", "restartPolicy")
	}
	mark := map[string]any{"app": object.GetName()}
	var selector any = map[string]any{"matchLabels": mark}
	if resource == "replicationcontrollers" {
		selector = mark
	}
	failed := errors.Join(set(selector, "selector"), set(mark, "template", "metadata", "labels"))
	if resource != "daemonsets" {
		failed = errors.Join(failed, set(int64(0), "replicas"))
	}
	return failed
}
