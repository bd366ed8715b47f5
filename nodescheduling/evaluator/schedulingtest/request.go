package schedulingtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// ParseRequest parses a request:
//
//	USER create pod NAMESPACE/NAME ATTRIBUTES            a name of "-" is left to the API server
//	USER update pod NAMESPACE/NAME ATTRIBUTES -> ATTRIBUTES   the second part is added to the first
//	USER update pod/status NAMESPACE/NAME ...            any subresource
//	USER bind NAMESPACE/NAME to=NODE                     bind-legacy: the old path
//	USER create deployment NAMESPACE/NAME ATTRIBUTES     and other workloads
//	USER connect pod/exec NAMESPACE/NAME                 exec, attach or portforward
//	USER delete pod NAMESPACE/NAME                       any operation
//
// A user may have groups: alice[dev,ops]. sa:NS/NAME is a service account. A token of OpenShift may be restricted to
// scopes: alice{user:info}, alice[dev]{user:info,user:check-access}.
func ParseRequest(line string) (Asked, error) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return Asked{}, errors.New("want a user, a verb and what it is about")
	}
	asked := Asked{}
	asked.User = user(words[0])
	if verb := words[1]; verb == "bind" || verb == "bind-legacy" {
		return asked.bind(verb, words)
	}
	if len(words) < 4 {
		return Asked{}, errors.New("want USER VERB KIND NAMESPACE/NAME")
	}
	asked.Operation = evaluator.Operation(strings.ToUpper(words[1]))
	kind, subresource, _ := strings.Cut(words[2], "/")
	asked.Subresource = subresource
	before, after := words[4:], []string(nil)
	for i, word := range before {
		if word == "->" {
			before, after = before[:i], append(append([]string{}, before[:i]...), before[i+1:]...)
			break
		}
	}
	if asked.Operation != evaluator.Update {
		before, after = nil, before
	} else if after == nil {
		after = before
	}
	var err error
	if asked.Object, err = asked.object(kind, words[3], after); err != nil {
		return Asked{}, err
	}
	if asked.Operation == evaluator.Update {
		if asked.Old, err = asked.object(kind, words[3], before); err != nil {
			return Asked{}, err
		}
	}
	asked.Namespace, asked.Name = asked.Object.GetNamespace(), asked.Object.GetName()
	return asked, nil
}

func user(text string) evaluator.User {
	text, scopes, restricted := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	who := userOf(text)
	if restricted {
		who.UID, who.Extra = "uid-of-"+who.Name, map[string][]string{scopesOf: list([]string{scopes})}
	}
	return who
}

// scopesOf is the part of a user's extra in which OpenShift has the scopes of a token. Its authorizer allows only what
// one of them does.
const scopesOf = "scopes.authorization.openshift.io"

func userOf(text string) evaluator.User {
	name, groups, given := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	if account, found := strings.CutPrefix(name, "sa:"); found {
		namespace, short, _ := strings.Cut(account, "/")
		name = "system:serviceaccount:" + namespace + ":" + short
		if !given {
			groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
			return evaluator.User{Name: name, Groups: groups}
		}
	}
	u := evaluator.User{Name: name}
	switch {
	case given:
		u.Groups = list([]string{groups})
	case strings.HasPrefix(name, "system:node:"):
		u.Groups = []string{"system:nodes"}
	}
	u.Groups = append(u.Groups, "system:authenticated")
	return u
}

func (asked Asked) bind(verb string, words []string) (Asked, error) {
	a := attributes(words[3:])
	asked.Operation, asked.Resource, asked.Subresource = evaluator.Create, "pods", "binding"
	if verb == "bind-legacy" {
		asked.Resource, asked.Subresource = "bindings", ""
	}
	namespace, name, _ := strings.Cut(words[2], "/")
	asked.Namespace, asked.Name = namespace, name
	_, asked.DryRun = a["dry-run"]
	b := &corev1.Binding{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"}, Target: corev1.ObjectReference{
		Kind: last(a["kind"]), Name: last(a["to"]),
	}}
	b.Namespace, b.Name = namespace, name
	b.Annotations, b.Labels = pairs(a["annotation"]), pairs(a["label"])
	asked.Object = b
	return asked, nil
}

// object makes the object of a request, and sets its group and resource in asked.
func (asked *Asked) object(kind, name string, words []string) (Object, error) {
	asked.DryRun = slices.Contains(words, "dry-run")
	pod, err := newPod(name, words)
	if err != nil {
		return nil, err
	}
	template := corev1.PodTemplateSpec{Spec: pod.Spec}
	meta := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, OwnerReferences: pod.OwnerReferences}
	typed := func(group, version, resource, kind string) metav1.TypeMeta {
		asked.Group, asked.Resource = group, resource
		return metav1.TypeMeta{APIVersion: strings.TrimPrefix(group+"/"+version, "/"), Kind: kind}
	}
	switch kind {
	case "pod":
		pod.TypeMeta = typed("", "v1", "pods", "Pod")
		return pod, nil
	case "deployment":
		return &appsv1.Deployment{TypeMeta: typed("apps", "v1", "deployments", "Deployment"), ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{Template: template}}, nil
	case "daemonset":
		return &appsv1.DaemonSet{TypeMeta: typed("apps", "v1", "daemonsets", "DaemonSet"), ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{Template: template}}, nil
	case "statefulset":
		return &appsv1.StatefulSet{TypeMeta: typed("apps", "v1", "statefulsets", "StatefulSet"), ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Template: template}}, nil
	case "replicaset":
		return &appsv1.ReplicaSet{TypeMeta: typed("apps", "v1", "replicasets", "ReplicaSet"), ObjectMeta: meta,
			Spec: appsv1.ReplicaSetSpec{Template: template}}, nil
	case "replicationcontroller":
		return &corev1.ReplicationController{
			TypeMeta: typed("", "v1", "replicationcontrollers", "ReplicationController"), ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Template: &template},
		}, nil
	case "job":
		return &batchv1.Job{TypeMeta: typed("batch", "v1", "jobs", "Job"), ObjectMeta: meta,
			Spec: batchv1.JobSpec{Template: template}}, nil
	case "cronjob":
		jobs := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}
		return &batchv1.CronJob{TypeMeta: typed("batch", "v1", "cronjobs", "CronJob"), ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{JobTemplate: jobs}}, nil
	case "configmap":
		return &corev1.ConfigMap{TypeMeta: typed("", "v1", "configmaps", "ConfigMap"), ObjectMeta: meta}, nil
	}
	return nil, fmt.Errorf("unknown kind %q; want pod, a workload or configmap", kind)
}
