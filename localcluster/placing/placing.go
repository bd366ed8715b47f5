// Package placing sends the requests of the node scheduling policy's scripts (docs/scripts.md) to a real API server, as the
// users that they name. A guarded cluster is made of [World] and guarded by [Policy]; [Created], [Bound] and [Changed] are
// requests with the answers that every door must give.
package placing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling/schedulingtest"
)

const (
	// Policy is the configuration of the scripts.
	Policy = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- name: ControlPlane
  labelSelector: {matchLabels: {node-role.kubernetes.io/control-plane: ""}}
  mode: Enable
  authorizedUsers: ["system:kube-scheduler", kube-system/replicaset-controller, kube-system/daemon-set-controller, ops/default, "system:admin"]
emergencyOverride: Enable
`
	// People is the group of all users of the scripts. They may do everything as far as RBAC is concerned, so that a
	// denial is the policy's.
	People = "people"
	// World is the cluster of the scripts.
	World = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]
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
)

// Namespaces are those of the scripts. Each needs its service account default, which no controller makes where none runs.
func Namespaces() []string { return []string{"ops", "app", "web", "tmp"} }

// Ask sends a request of the script language as the user that it names, who is also a member of the groups, and returns
// how the policy answered in the words of the scripts: allow, warn CODE or deny CODE; unanswered when a webhook did not
// answer. Any other failure is an error.
func Ask(ctx context.Context, admin *rest.Config, line string, groups ...string) (string, error) {
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	heard := &heard{}
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: asked.User.Name, Groups: slices.Concat(asked.User.Groups, groups)}
	config.WarningHandler = heard
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	err = send(ctx, clients, asked)
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

// heard keeps warnings.
type heard struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }

// send does what a line says, through the clients of its user.
func send(ctx context.Context, clients kubernetes.Interface, asked schedulingtest.Asked) error {
	options := metav1.CreateOptions{}
	if asked.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	pods := clients.CoreV1().Pods(asked.Namespace)
	switch object := asked.Object.(type) {
	case *corev1.Binding:
		path := clients.CoreV1().RESTClient().Post().Namespace(asked.Namespace)
		if asked.Resource == "bindings" {
			return path.Resource("bindings").Body(object).Do(ctx).Error()
		}
		return path.Resource("pods").Name(asked.Name).SubResource("binding").Body(object).Do(ctx).Error()
	case *corev1.Pod:
		if asked.Operation == nodescheduling.Update {
			return update(ctx, clients, asked)
		}
		_, err := pods.Create(ctx, object, options)
		return err
	}
	return fmt.Errorf("objects of type %T are not sent", asked.Object)
}

// update gives the stored pod what the line adds.
func update(ctx context.Context, clients kubernetes.Interface, asked schedulingtest.Asked) error {
	want := asked.Object.(*corev1.Pod)
	pods := clients.CoreV1().Pods(asked.Namespace)
	stored, err := pods.Get(ctx, asked.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	stored.Labels, stored.Annotations = want.Labels, want.Annotations
	stored.Spec.NodeSelector, stored.Spec.Affinity, stored.Spec.SchedulingGates = want.Spec.NodeSelector, want.Spec.Affinity, want.Spec.SchedulingGates
	stored.Spec.Tolerations = append(want.Spec.Tolerations, stored.Spec.Tolerations...)
	if asked.Subresource == "status" {
		_, err = pods.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
		return err
	}
	_, err = pods.Update(ctx, stored, metav1.UpdateOptions{})
	return err
}
