package evaluator

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

const pinned = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

// what follows the @ is a UID as Kubernetes writes them, and nothing else.
func TestA11_OnlyUIDsPin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		pinned: true, "00000000-0000-0000-0000-000000000000": true, "99999999-9999-9999-9999-999999999999": true,
		"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa": true, "ffffffff-ffff-ffff-ffff-ffffffffffff": true,
		"": false, pinned[1:]: false, pinned + "0": false, strings.ToUpper(pinned): false,
		strings.ReplaceAll(pinned, "-", "."): false,
		strings.ReplaceAll(pinned, "-", "0"): false, "/" + pinned[1:]: false, ":" + pinned[1:]: false,
		"`" + pinned[1:]: false, "g" + pinned[1:]: false, "-" + pinned[1:]: false, pinned[:35] + "g": false,
	} {
		if isUID(text) != want {
			t.Errorf("%q: %t, want %t", text, !want, want)
		}
	}
	for text, want := range map[string]entry{
		"system:serviceaccount:a:b": {user: "system:serviceaccount:a:b", namespace: "a", home: "a"},
		"system:serviceaccount:a:b@" + pinned: {user: "system:serviceaccount:a:b", namespace: "a", home: "a",
			uid: pinned},
		"a/b@" + pinned: {user: "system:serviceaccount:a:b", namespace: "a", home: "a",
			uid: pinned},
		"namespace:a@" + pinned:                    {namespace: "a", home: "a", uid: pinned},
		"group:system:serviceaccounts:a@" + pinned: {group: "system:serviceaccounts:a", home: "a", uid: pinned},
		"group:system:serviceaccounts:A":           {group: "system:serviceaccounts:A"},
		"group:system:serviceaccounts":             {group: "system:serviceaccounts"},
		"group:a@b":                                {group: "a@b"},
		"user:a@b":                                 {user: "a@b"},
		"user:system:serviceaccount:a:b@" + pinned: {user: "system:serviceaccount:a:b", home: "a", uid: pinned},
		"a@b":         {user: "a@b"},
		"Namespace:a": {user: "Namespace:a"},
	} {
		if got, err := parseEntry(text); err != nil || got != want {
			t.Errorf("%q reads as %+v (%v), want %+v", text, got, err, want)
		}
	}
}

// policyOf is a policy with one enabled group and this list.
func policyOf(t *testing.T, pins v1alpha1.EntryPins, users ...string) *Policy {
	t.Helper()
	group := v1alpha1.SchedulingPolicyGroup{Name: configv1.ControlPlane, Mode: configv1.Enable,
		AuthorizedUsers: append([]string{}, users...)}
	group.LabelSelector.MatchLabels = map[string]string{"cp": ""}
	policy, _, err :=
		New(Sources{Config: &v1alpha1.NodeSchedulingPolicyConfig{Groups: []v1alpha1.SchedulingPolicyGroup{group},
			EntryPins: pins, EmergencyOverride: v1alpha1.OverrideEnable}})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// without a port for namespaces entries with a UID authorize nobody, and the others hold; a namespace is asked
// for once for a request.
func TestA11_NamespacesAreAskedForOnce(t *testing.T) {
	t.Parallel()
	evaluation := func(users ...string) (*evaluation, *group) {
		policy := policyOf(t, "", users...)
		e := &evaluation{
			policy: policy,
			request: &Request{Namespace: "a",
				User: User{Name: "system:serviceaccount:a:b", Groups: []string{"system:serviceaccounts:a"}}},
		}
		return e, &policy.all[0]
	}
	e, g := evaluation("a/b@" + pinned)
	if f := e.halves(g); f.ActorAuthorized || f.NamespaceAuthorized || len(e.stale) > 0 {
		t.Errorf("without a port: %+v, %v", f, e.stale)
	}
	e, g = evaluation("a/b")
	if f := e.halves(g); !f.ActorAuthorized || !f.NamespaceAuthorized {
		t.Errorf("without a UID and a port: %+v", f)
	}
	e, g = evaluation("alice", "group:admins")
	e.request.User = User{Name: "alice", Groups: []string{"admins"}}
	e.cluster.Namespace = func(name string) (string, bool, error) {
		t.Errorf("for people %q was asked for", name)
		return "", false, nil
	}
	if f := e.halves(g); !f.ActorAuthorized {
		t.Errorf("people: %+v", f)
	}
	for name, answer := range map[string]error{"the answer": nil, "an error": errors.New("no answer")} {
		asked := 0
		e, g = evaluation("other", "a/b@"+pinned, "namespace:a@"+pinned, "group:system:serviceaccounts:a@"+pinned)
		e.cluster.Namespace = func(name string) (string, bool, error) {
			if asked++; name != "a" {
				t.Errorf("asked for %q", name)
			}
			return pinned, true, answer
		}
		for range 3 {
			if f := e.halves(g); f.ActorAuthorized != (answer == nil) || f.NamespaceAuthorized != (answer == nil) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

// the entry to ask for has a UID where the policy wants one, and the namespace has one.
func TestA11_TheRemedyIsPinned(t *testing.T) {
	t.Parallel()
	uid, exists, failure := pinned, true, error(nil)
	ask := func(string) (string, bool, error) { return uid, exists, failure }
	require := &evaluation{policy: policyOf(t, v1alpha1.PinsRequire), cluster: Cluster{Namespace: ask}}
	warn := &evaluation{policy: policyOf(t, ""), cluster: Cluster{Namespace: ask}}
	for _, c := range []struct {
		e               *evaluation
		namespace, want string
	}{{require, "a", "@" + pinned}, {require, "kube-system", ""}, {require, "openshift-dns", ""}, {require, "", ""},
		{warn, "a", ""}, {&evaluation{policy: require.policy}, "a", ""}} {
		if got := c.e.pinFor(c.namespace); got != c.want {
			t.Errorf("namespace %q: %q, want %q", c.namespace, got, c.want)
		}
	}
	for name, change := range map[string]func(){"gone": func() { exists = false },
		"unreadable": func() { exists, failure = true, errors.New("no answer") }} {
		change()
		if got := (&evaluation{policy: require.policy, cluster: Cluster{Namespace: ask}}).pinFor("a"); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if pins, err := (*Policy)(nil).Pins(nil); pins != nil || err != nil {
		t.Errorf("no policy has pins %v (%v)", pins, err)
	}
	pins, err := policyOf(t, "", "a/b@"+pinned).Pins(func(string) (string, bool, error) { return "other", true, nil })
	if err != nil || len(pins) != 1 || pins[0].UID != pinned || pins[0].Now != "other" || pins[0].State != Replaced ||
		pins[0].Fine() {
		t.Errorf("%+v (%v)", pins, err)
	}
	if (Pin{State: Replaced, Namespace: "kube-x"}).Fine() || !(Pin{State: Dangling, Namespace: "kube-x"}).Fine() {
		t.Error(
			"a name of the platform is fine although another namespace was meant, or is not although there is none")
	}
}

// only the kubelet of the pod's own node, as a member of system:nodes, is let through, to what the pod was;
// without the port nobody is known to enter a pod with the override.
func TestA17_TheKubeletIsThatOfThePod(t *testing.T) {
	t.Parallel()
	on := func(node string) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		pod.Annotations = map[string]string{OverrideAnnotation: "why"}
		return pod
	}
	nodes := []string{"system:nodes"}
	for _, c := range []struct {
		subject      subject
		old, entered *corev1.Pod
		user         User
		want         bool
	}{
		{updatedPod, on("n"), nil, User{Name: "system:node:n", Groups: nodes}, true},
		{updatedPod, on("n"), nil, User{Name: "system:node:n"}, false},
		{updatedPod, on("n"), nil, User{Name: "system:node:m", Groups: nodes}, false},
		{updatedPod, on(""), nil, User{Name: "system:node:", Groups: nodes}, false},
		{connection, nil, on("n"), User{Name: "system:node:n", Groups: nodes}, true},
		{connection, nil, nil, User{Name: "system:node:n", Groups: nodes}, false},
	} {
		e := &evaluation{subject: c.subject, entered: c.entered, request: &Request{User: c.user, OldPod: c.old}}
		if e.isKubeletOfPod() != c.want {
			t.Errorf("%+v: %t", c, !c.want)
		}
	}
	request := &Request{Operation: Connect, Resource: "pods", Subresource: "exec", Namespace: "a", Name: "b",
		User: User{Name: "alice"}}
	if v := policyOf(t, "").Evaluate(request, Cluster{}); !v.Allowed {
		t.Errorf("without a port: %s", v.Message)
	}
}
