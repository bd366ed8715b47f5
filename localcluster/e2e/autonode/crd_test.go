package autonode

import (
	"context"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// sourcePolicy and sourcePool are the manifests of the enhancement, value for value.
const (
	sourcePolicy = `
nodePoolDefaults:
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge, m5.2xlarge, m5.4xlarge]}
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b, us-east-1c]}
  - {key: kubernetes.io/arch, operator: In, values: [amd64]}
ec2NodeClassDefaults:
  rootVolume: {volumeSize: 75Gi, volumeType: gp3, encrypted: true}`
	sourcePool = `
template:
  spec:
    requirements:
    - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}`
)

// served returns the names of the resources of our group on a cluster, subresources among them.
func served(t *testing.T, r *rig.Rig) map[string]metav1.APIResource {
	t.Helper()
	config, err := r.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	resources, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerResourcesForGroupVersion(
		policyKind.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]metav1.APIResource{}
	for _, resource := range resources.APIResources {
		byName[resource.Name] = resource
	}
	return byName
}

func TestR1_PoliciesAreServedOnTheManagementClusterOnly(t *testing.T) {
	w := begin(t)
	mgmt := served(t, w.mgmt)
	if policies := mgmt["autonodepolicies"]; !policies.Namespaced || policies.Kind != "AutoNodePolicy" {
		t.Errorf("the management cluster serves autonodepolicies as %+v, want a namespaced AutoNodePolicy", policies)
	}
	if _, there := mgmt["autonodepolicies/status"]; !there {
		t.Error("the management cluster does not serve autonodepolicies/status")
	}
	for name := range served(t, w.guest) {
		if strings.HasPrefix(name, "autonodepolicies") {
			t.Errorf("the guest serves %s", name)
		}
	}
}

func TestR2_WhatIsWrittenIsReadBackAndUnknownFieldsGo(t *testing.T) {
	w := begin(t)
	for name, spec := range map[string]object{"sample": parse(sourcePolicy), "empty": {}} {
		w.put(w.sre, newObject(policyKind, w.namespace, name, spec))
		if got := field(w.readPolicy(name), "spec"); !reflect.DeepEqual(got, any(spec)) {
			t.Errorf("%s: stored as %s, want %s", name, show(got), show(spec))
		}
	}
	w.put(w.sre, newObject(policyKind, w.namespace, "unknown", object{"foo": "bar"}))
	if foo := field(w.readPolicy("unknown"), "spec", "foo"); foo != nil {
		t.Errorf("the unknown field foo is stored as %s", show(foo))
	}
}

func (w *world) readPolicy(name string) *unstructured.Unstructured {
	w.t.Helper()
	p := newObject(policyKind, w.namespace, name, nil)
	if err := w.sre.Get(w.ctx, client.ObjectKeyFromObject(p), p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestR3_StatusAndSpecAreWrittenApart(t *testing.T) {
	w := begin(t)
	p := w.put(w.sre, newObject(policyKind, w.namespace, "other", restrict(in(instanceType, "a"))))
	status := parse(
		`{conditions: [{type: Ready, status: "True", reason: Test, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`)
	p.Object["status"] = status
	if err := w.sre.Update(w.ctx, p); err != nil {
		t.Fatal(err)
	}
	if got := field(w.readPolicy("other"), "status"); got != nil {
		t.Errorf("a write of the object wrote its status: %s", show(got))
	}
	p.Object["status"], p.Object["spec"] = status, restrict(in(instanceType, "b"))
	if err := w.sre.Status().Update(w.ctx, p); err != nil {
		t.Fatal(err)
	}
	got := w.readPolicy("other")
	if condition(got, "Ready") == nil {
		t.Error("a write of the status did not write it")
	}
	if spec := field(got, "spec"); !reflect.DeepEqual(spec, any(restrict(in(instanceType, "a")))) {
		t.Errorf("a write of the status wrote the spec: %s", show(spec))
	}
}

func TestR4_OnlyOperatorsThatExistAreAccepted(t *testing.T) {
	w := begin(t)
	for _, e := range []object{
		in(arch, "amd64"), entry(arch, "NotIn", "arm64"), entry(arch, "Exists"),
		entry("example.com/x", "DoesNotExist"),
		entry("karpenter.k8s.aws/instance-cpu", "Gt", "3"), entry("karpenter.k8s.aws/instance-cpu", "Lt", "65"),
		// G26
		entry("karpenter.k8s.aws/instance-cpu", "Gte", "4"), entry("karpenter.k8s.aws/instance-cpu", "Lte", "64"),
	} {
		if err := w.try(w.sre, newObject(policyKind, w.namespace, "other", restrict(e))); err != nil {
			t.Errorf("%s is refused: %v", show(e), err)
		}
	}
	err := w.try(w.sre, newObject(policyKind, w.namespace, "foo", restrict(entry(arch, "Foo", "amd64"))))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "operator") ||
		!strings.Contains(err.Error(), "Foo") {
		t.Errorf("operator Foo is answered with %v, want 422 naming the field and the value", err)
	}
}

func TestR5_OnlyTheNameDefaultIsRecognised(t *testing.T) {
	w := begin(t)
	spec := restrict(in(instanceType, "a"))
	w.put(w.sre, newObject(policyKind, w.namespace, "other", spec))
	w.pool("r5", wants(in(instanceType, "b")))
	w.merged("r5", in(instanceType, "b"))
	w.stays("the ignored policy's status", func() any { return field(w.readPolicy("other"), "status") })
	if status := field(w.readPolicy("other"), "status", "conditions"); status != nil {
		t.Errorf("the ignored policy has conditions: %s", show(status))
	}
	w.policy(spec)
	w.merged("r5", in(instanceType, "a"), in(instanceType, "b"))
}

func TestR6_ThePolicyOfAnotherNamespaceDoesNotMatter(t *testing.T) {
	w := begin(t)
	w.put(w.sre, newObject(policyKind, otherHCP, "default", restrict(in(instanceType, "a"))))
	w.pool("r6", wants(in(instanceType, "b")))
	w.merged("r6", in(instanceType, "b"))
	w.stays("the NodePool", func() any { return requirementsOf(w.get(nodePoolKind, "r6")) })
}

func TestR7_OnePolicyAppliesToAllWrappers(t *testing.T) {
	w := begin(t)
	pools, classes := []string{"r7-1", "r7-2", "r7-3", "r7-4", "r7-5"}, []string{"r7-a", "r7-b", "r7-c"}
	for _, name := range pools {
		w.pool(name, wants(in(arch, "amd64")))
	}
	for _, name := range classes {
		w.class(name, object{"monitoring": "Basic"})
	}
	w.policy(both(restrict(in(instanceType, "a")), root("{volumeSize: 90Gi}")))
	for _, name := range pools {
		w.merged(name, in(instanceType, "a"), in(arch, "amd64"))
	}
	w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", append(classes, "default")...)
}

func TestR8_GuestsCannotSeeThePolicy(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	guest, err := w.guest.Cluster.RESTConfig("cadmin")
	if err != nil {
		t.Fatal(err)
	}
	config, err := w.mgmt.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.CertFile, config.KeyFile, config.CertData, config.KeyData = guest.CertFile, guest.KeyFile, guest.CertData,
		guest.KeyData
	// The mapper needs discovery, which this client may not use: the test gives it what it would find.
	outsider, err := client.New(config, client.Options{Mapper: w.sre.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	for verb, try := range map[string]func(context.Context, *unstructured.Unstructured) error{
		"get": func(ctx context.Context, p *unstructured.Unstructured) error {
			return outsider.Get(ctx, client.ObjectKeyFromObject(p), p)
		},
		"update": func(ctx context.Context, p *unstructured.Unstructured) error { return outsider.Update(ctx, p) },
		"delete": func(ctx context.Context, p *unstructured.Unstructured) error { return outsider.Delete(ctx, p) },
	} {
		err := try(w.ctx, newObject(policyKind, w.namespace, "default", object{}))
		if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s with the guest's certificate is answered with %v, want 401 or 403", verb, err)
		}
	}
}
