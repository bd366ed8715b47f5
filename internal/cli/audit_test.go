package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
)

const policy = `
apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- name: ControlPlane
  labelSelector: {matchLabels: {cp: ""}}
  authorizedUsers: ["system:kube-scheduler"]
`

// audited is a cluster to audit: a Scheduler, or none, and objects of Kubernetes.
type audited struct {
	server  *doortest.Server
	dynamic *dynamicfake.FakeDynamicClient
	typed   *fake.Clientset
}

// newAudited has Scheduler with the field, and no NodeSchedulingGroups.
func newAudited(scheduler *unstructured.Unstructured, objects ...runtime.Object) audited {
	server := &doortest.Server{Spec: doortest.WithField, Scheduler: scheduler, NoGroups: true}
	return audited{server, server.Dynamic(), fake.NewClientset(objects...)}
}

func (a audited) run(t *testing.T, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, failures bytes.Buffer
	code = cli.Run(t.Context(), cli.Config{
		Client:    func(cli.Connection) (dynamic.Interface, error) { return a.dynamic, nil },
		Clientset: func(cli.Connection) (kubernetes.Interface, error) { return a.server.Clients(a.typed), nil },
		In:        strings.NewReader(in), Out: &out, Err: &failures,
	}, append([]string{"audit", "control-plane"}, args...))
	return code, out.String(), failures.String()
}

func scheduler(mode string, entries ...any) *unstructured.Unstructured {
	group := map[string]any{"name": "ControlPlane", "mode": mode, "authorizedUsers": entries}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"schedulingGroups": []any{group}},
	}}
}

func protected() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp1", Labels: map[string]string{"cp": ""}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "cp", Effect: corev1.TaintEffectNoSchedule}}}}
}

func podOn(name, node string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: owners},
		Spec: corev1.PodSpec{NodeName: node}}
}

// H14: the policy of the file and Scheduler's mode decide. The owner is the object that a user edits. The exit code
// tells whether something is left to do. Nothing is written.
func TestAuditOfACluster(t *testing.T) {
	t.Parallel()
	controller := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(true)}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: podOn("web-1", "", controller("Deployment", "web")).ObjectMeta}
	c := newAudited(scheduler("Inform"), protected(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}, set,
		podOn("web-1-a", "cp1", controller("ReplicaSet", "web-1")),
		podOn("other", "w1"), podOn("orphan", "cp1", controller("ReplicaSet", "gone")))
	code, stdout, stderr := c.run(t, policy, "--policy-file", "-", "-o", "json")
	var report audit.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != cli.CodeFindings || stderr != "" {
		t.Fatalf("exit %d, %s, %s, error %v", code, stdout, stderr, err)
	}
	owners := []string{}
	for _, f := range report.Findings {
		owners = append(owners, f.Owner.Kind+"/"+f.Owner.Name)
	}
	if !slices.Equal(owners, []string{"Deployment/web", "ReplicaSet/gone"}) || report.Groups[0].Mode != "Inform" ||
		report.Pods != 3 || report.Nodes != 2 {
		t.Errorf("owners %v, report %+v", owners, report)
	}
	for _, action := range slices.Concat(c.dynamic.Actions(), c.typed.Actions()) {
		if !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			t.Errorf("the audit does %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	const uid = "00000000-0000-0000-0000-000000000001"
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: uid}}
	loose := newAudited(scheduler("Enable", "shop/default"), protected(), podOn("web", "cp1"), shop)
	if code, stdout, _ := loose.run(t, policy, "--policy-file", "-"); code != cli.CodeFindings ||
		!strings.Contains(stdout, `write "shop/default@`+uid+`" instead`) {
		t.Errorf("an entry without a UID: exit %d, %s", code, stdout)
	}
	fine := newAudited(scheduler("Enable", "shop/default@"+uid), protected(), podOn("web", "cp1"), shop)
	if code, stdout, _ := fine.run(t, policy, "--policy-file", "-"); code != cli.CodeFine ||
		!strings.Contains(stdout, "1 pod of authorized namespaces (shop 1)\nnothing is left") {
		t.Errorf("authorized by Scheduler: exit %d, %s", code, stdout)
	}
	untainted := protected()
	untainted.Spec.Taints = nil
	bare := newAudited(nil, untainted)
	if code, stdout, _ := bare.run(t, policy, "--policy-file", "-"); code != cli.CodeFindings ||
		!strings.Contains(stdout, "Node cp1 of group ControlPlane: NodeWithoutTaint") {
		t.Errorf("a node without a taint: exit %d, %s", code, stdout)
	}
	hook := &appsv1.ReplicaSet{ObjectMeta: podOn("hook-1", "", controller("Deployment", "joiner-webhook")).ObjectMeta}
	for want, rogue := range map[int]*corev1.Pod{cli.CodeFine: podOn("elsewhere", "w1"),
		cli.CodeFindings: podOn("rogue", "cp1")} {
		own := newAudited(nil, protected(), hook, podOn("hook-1-a", "cp1", controller("ReplicaSet", "hook-1")), rogue)
		code, stdout, _ := own.run(t, policy, "--policy-file", "-", "--webhook-namespace", "shop")
		if code != want || strings.Contains(stdout, "UnjudgedPod") != (want == cli.CodeFindings) {
			t.Errorf("the webhook's own namespace with %s: exit %d, %s", rogue.Name, code, stdout)
		}
	}
}

// H14: thousands of pods are read page by page, and those that have ended are not asked for.
func TestAuditReadsPages(t *testing.T) {
	t.Parallel()
	c := newAudited(nil, protected())
	const pages = 3
	var asked []string
	c.typed.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).GetListOptions()
		asked = append(asked, fmt.Sprintf("%q limit %d %s", options.Continue, options.Limit, options.FieldSelector))
		list := &corev1.PodList{Items: []corev1.Pod{*podOn(fmt.Sprintf("web-%d", len(asked)), "cp1")}}
		if len(asked) < pages {
			list.Continue = fmt.Sprint(len(asked))
		}
		return true, list, nil
	})
	code, stdout, _ := c.run(t, policy, "--policy-file", "-")
	const rest = " limit 500 status.phase!=Succeeded,status.phase!=Failed"
	if want := []string{`""` + rest, `"1"` + rest, `"2"` + rest}; code != cli.CodeFindings ||
		!strings.Contains(stdout, "looked at 3 pods, 0 workloads and 1 node") || !slices.Equal(asked, want) {
		t.Errorf("exit %d, asked %q, %s", code, asked, stdout)
	}
}

// H14: what is wrong with a call is said in one line for each mistake, with exit code 2.
func TestAuditThatCannotBeMade(t *testing.T) {
	t.Parallel()
	forbidden := newAudited(nil, protected())
	forbidden.typed.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	})
	unasked := newAudited(nil, protected(), podOn("web", "cp1"))
	unasked.typed.PrependReactor("create", "subjectaccessreviews",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "",
				errors.New("no"))
		})
	for want, row := range map[string]struct {
		cluster audited
		in      string
		args    []string
	}{
		"joinerctl: --policy-file is missing: give the file with the NodeSchedulingPolicyConfig": {
			newAudited(nil), "", nil,
		},
		"joinerctl: --policy-file: open nowhere": {
			newAudited(nil), "", []string{"--policy-file", "nowhere"},
		},
		"joinerctl: --policy-file -: NodeSchedulingPolicyConfig: the document is empty": {
			newAudited(nil), "", []string{"--policy-file", "-"},
		},
		`groups[0].mode is "On": it must be`: {
			newAudited(nil), strings.Replace(policy, "- name:", "- mode: \"On\"\n  name:", 1) + "authorization: All\n",
			[]string{"--policy-file", "-"},
		},
		`joinerctl: --output is "xml": it must be table, wide, json`: {newAudited(nil),
			policy, []string{"--policy-file", "-", "-o", "xml"}},
		"joinerctl: listing pods: pods is forbidden": {
			forbidden, policy, []string{"--policy-file", "-"},
		},
		"joinerctl: asking the cluster's authorizer about namespace shop and group ControlP": {
			unasked, policy + "authorization: ListsAndRBAC\n", []string{"--policy-file", "-"},
		},
		"unknown command \"now\"": {newAudited(nil), policy,
			[]string{"--policy-file", "-", "now"}},
	} {
		if code, stdout, stderr := row.cluster.run(t, row.in, row.args...); code != cli.CodeFailed || stdout != "" ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, %q; want %q", row.args, code, stdout, stderr, want)
		}
	}
	if code, stdout, _ := newAudited(nil).run(t, "", "--help"); code != cli.CodeFine ||
		!strings.Contains(stdout, "Exit code: 0 nothing is left") {
		t.Errorf("help: exit %d, %s", code, stdout)
	}
}
