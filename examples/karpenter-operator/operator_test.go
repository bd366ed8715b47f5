package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
)

// `make check-consumers` runs these tests: they need two control planes, whose kubeconfigs the environment names.

const (
	namespace    = "hcp-a"
	instanceType = "node.kubernetes.io/instance-type"
	patience     = time.Minute
)

type object = map[string]any

// world is both clusters, with the example running between them.
type world struct {
	*testing.T
	guest, admin client.Client
}

func begin(t *testing.T) world {
	t.Helper()
	w := world{T: t}
	for name, into := range map[string]*client.Client{"GUEST_KUBECONFIG": &w.guest, "ADMIN_KUBECONFIG": &w.admin} {
		config, err := clientcmd.BuildConfigFromFlags("", environment(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if *into, err = client.New(config, client.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, environment(t, "GUEST_KUBECONFIG"), environment(t, "MANAGEMENT_KUBECONFIG"), namespace)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run make check-consumers", name)
	}
	return value
}

// put creates an object, or gives it another spec.
func (w world) put(as client.Client, kind schema.GroupVersionKind, in, name string, spec object) {
	w.Helper()
	wanted := &unstructured.Unstructured{Object: object{"spec": spec}}
	wanted.SetGroupVersionKind(kind)
	wanted.SetNamespace(in)
	wanted.SetName(name)
	err := as.Patch(w.Context(), wanted, client.Apply, client.FieldOwner("test"), client.ForceOwnership)
	if err != nil {
		w.Fatal(err)
	}
}

// policy writes the provider's policy.
func (w world) policy(spec object) {
	w.Helper()
	w.put(w.admin, v1beta1.GroupVersion().WithKind("AutoNodePolicy"), namespace, v1beta1.PolicyName, spec)
}

// has waits until a field of an object is as it should be.
func (w world) has(as client.Client, kind schema.GroupVersionKind, in, name string, want any, path ...string) {
	w.Helper()
	var got any
	for end := time.Now().Add(patience); time.Now().Before(end); {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(kind)
		err := as.Get(w.Context(), client.ObjectKey{Namespace: in, Name: name}, found)
		if got, _, _ = unstructured.NestedFieldNoCopy(found.Object, path...); err == nil &&
			reflect.DeepEqual(got, want) {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	w.Fatalf("%s %s has %v of %v, want %v", kind.Kind, name, path, got, want)
}

func in(values ...any) object {
	return object{"key": instanceType, "operator": "In", "values": values}
}

func restrict(entries ...any) object {
	return object{"nodePoolDefaults": object{"requirements": entries}}
}

// R10, R12, R19, R20, R28 and R44 hold through the example, with Karpenter's own types.
func TestTheExampleEnforcesPolicies(t *testing.T) {
	w := begin(t)
	pool := schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
	policies := v1beta1.GroupVersion().WithKind("AutoNodePolicy")
	requirements := func(want ...any) {
		t.Helper()
		w.has(w.guest, pool, "", "web", any(want), "spec", "template", "spec", "requirements")
	}
	root := func(size string) {
		t.Helper()
		w.has(w.guest, classKind, "", "large", any([]any{
			object{"deviceName": "/dev/xvda", "rootVolume": true,
				"ebs": object{"volumeSize": size, "volumeType": "gp3", "encrypted": true}},
			object{"deviceName": "/dev/xvdb"},
		}), "spec", "blockDeviceMappings")
	}
	w.put(w.guest, poolWrapper, "", "web",
		object{"template": object{"spec": object{"requirements": []any{in("b", "d")}}}})
	w.put(w.guest, classWrapper, "", "large", object{"blockDeviceMappings": []any{
		object{"deviceName": "/dev/xvda", "ebs": object{"volumeSizeGiB": int64(500)}},
		object{"deviceName": "/dev/xvdb", "ebs": object{"volumeSizeGiB": int64(10)}},
	}})
	requirements(in("b", "d"))
	root("75Gi")
	w.policy(restrict(in("a", "b", "c"))) // R10, R12
	requirements(in("a", "b", "c"), in("b", "d"))
	spec := restrict(in("a", "b", "c", "d")) // R19
	spec["ec2NodeClassDefaults"] = object{"rootVolume": object{"volumeSize": "100Gi"}}
	w.policy(spec)
	requirements(in("a", "b", "c", "d"), in("b", "d"))
	root("100Gi") // R28
	ready := func(status, reason string) {
		t.Helper()
		for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
			found := &v1beta1.AutoNodePolicy{}
			raw := &unstructured.Unstructured{}
			raw.SetGroupVersionKind(policies)
			if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1beta1.PolicyName},
				raw); err != nil {
				t.Fatal(err)
			}
			conditions, _, _ := unstructured.NestedSlice(raw.Object, "status", "conditions")
			said := fmt.Sprint(conditions)
			if len(conditions) == 1 && conditions[0].(object)["status"] == status &&
				conditions[0].(object)["reason"] == reason &&
				conditions[0].(object)["observedGeneration"] == raw.GetGeneration() {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("conditions %s of %s, want %s %s", said, found.Name, status, reason)
			}
		}
	}
	ready("True", "Applied")
	w.policy(restrict(in("a"), in("b"))) // R44, G14
	ready("False", "ConflictingRequirements")
	requirements(in("a", "b", "c", "d"), in("b", "d"))
	w.policy(restrict(in("b")))
	ready("True", "Applied")
	requirements(in("b"), in("b", "d"))
	gone := &unstructured.Unstructured{}
	gone.SetGroupVersionKind(policies)
	gone.SetNamespace(namespace)
	gone.SetName(v1beta1.PolicyName)
	if err := w.admin.Delete(t.Context(), gone); err != nil { // R20
		t.Fatal(err)
	}
	requirements(in("b", "d"))
	root("75Gi")
}
