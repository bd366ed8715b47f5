package merge_test

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

func observed() []*hypershiftv1.ObservedPolicy {
	return []*hypershiftv1.ObservedPolicy{nil, {}, {Generation: 1}}
}

func statuses() []metav1.ConditionStatus {
	return []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
}

// fullPool has every field of an OpenshiftNodePool's spec, weight and replicas side by side though the API allows one
// of them: the merge copies whatever is there.
const fullPool = `
metadata:
  name: full
  uid: "1234"
  labels: {a: b, app.kubernetes.io/managed-by: Helm}
  annotations:
    karpenter.sh/graceful-expiration: "true"
    example.com/a: "1"
    example.com/b: "2"
    karpenter.sh/nodepool-hash: "1"
    karpenter.sh/nodepool-hash-version: v3
    kubectl.kubernetes.io/last-applied-configuration: "{}"
  finalizers: [x/y]
  resourceVersion: "7"
spec:
  template:
    metadata: {labels: {team: a}, annotations: {note: b}}
    spec:
      taints: [{key: k, value: v, effect: NoSchedule}]
      startupTaints: [{key: s, effect: NoExecute}]
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: large}
      terminationGracePeriod: 1h
      expireAfter: 24h
  disruption: {consolidateAfter: 30s, consolidationPolicy: WhenEmpty, budgets: []}
  limits: {cpu: "10"}
  hardLimits: {nodes: "3"}
  weight: 5
  replicas: 2
`

// R9: all other fields of the spec are copied, and of the metadata what belongs to the new object.
func TestEveryFieldOfAPoolIsCopied(t *testing.T) {
	t.Parallel()
	var pool hypershiftv1beta1.OpenshiftNodePool
	if err := yaml.UnmarshalStrict([]byte(fullPool), &pool); err != nil {
		t.Fatal(err)
	}
	for _, part := range []any{pool.Spec, pool.Spec.Template, pool.Spec.Template.Spec, pool.Spec.Template.ObjectMeta} {
		everyFieldIsSet(t, part)
	}
	got := merge.NodePool(nil, &pool, merge.NodePoolSettings{}).NodePool
	if want, have := fields(t, pool.Spec), fields(t, got.Spec); !reflect.DeepEqual(want, have) {
		t.Errorf("spec\n%v, want\n%v", have, want)
	}
	if got.Name != "full" || got.ResourceVersion != "" || got.UID != "" || len(got.Finalizers) != 0 {
		t.Errorf("metadata %+v", got.ObjectMeta)
	}
	if want := map[string]string{"a": "b", merge.ManagedByLabel: merge.ManagedByValue}; !reflect.DeepEqual(got.Labels,
		want) {
		t.Errorf("labels %v, want %v", got.Labels, want)
	}
	kept := map[string]string{"karpenter.sh/graceful-expiration": "true", "example.com/a": "1", "example.com/b": "2"}
	for range 20 { // maps have another order each time
		got := merge.NodePool(nil, &pool, merge.NodePoolSettings{}).NodePool
		if !reflect.DeepEqual(got.Annotations, kept) {
			t.Fatalf("annotations %v, want %v: hashes belong to the object they are of", got.Annotations, kept)
		}
	}
	owner := metav1.OwnerReference{APIVersion: "karpenter.hypershift.openshift.io/v1beta1", Kind: "OpenshiftNodePool",
		Name: "full", UID: "1234", Controller: new(true), BlockOwnerDeletion: new(true)}
	if want := []metav1.OwnerReference{owner}; !reflect.DeepEqual(got.OwnerReferences, want) {
		t.Errorf("owners %v, want %v", got.OwnerReferences, want)
	}
}

// everyFieldIsSet keeps the example above complete when the API grows.
func everyFieldIsSet(t *testing.T, part any) {
	t.Helper()
	value := reflect.ValueOf(part)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("%s.%s is not set in the example: add it, and see that the merge copies it", value.Type(),
				value.Type().Field(i).Name)
		}
	}
}

func fields(t *testing.T, value any) map[string]any {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// R28, R32, R33: whatever the policy and the wrapper say, there is one root volume, and a policy changes nothing else.
func TestAPolicyChangesTheRootVolumeOnly(t *testing.T) {
	t.Parallel()
	for _, disks := range [][]hypershiftv1.BlockDeviceMapping{
		nil,
		{{DeviceName: merge.RootDevice, EBS: &hypershiftv1.BlockDevice{VolumeSizeGiB: new(int64(500))}}},
		{{DeviceName: "/dev/xvdb"}, {DeviceName: "/dev/xvdc", RootVolume: hypershiftv1.RootVolumeRoleRoot}},
	} {
		wrapper := &hypershiftv1.OpenshiftEC2NodeClass{}
		wrapper.Name = "default"
		wrapper.Spec.BlockDeviceMappings = disks
		wrapper.Spec.Tags = map[string]string{"a": "b"}
		before := wrapper.DeepCopy()
		policy := &hypershiftv1beta1.AutoNodePolicy{}
		policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{VolumeType: new("io2"),
			IOPS: new(int64(100))}
		without := merge.EC2NodeClass(nil, wrapper, merge.DefaultRootVolume(), defaultInfra()).EC2NodeClass
		with := merge.EC2NodeClass(policy, wrapper, merge.DefaultRootVolume(), defaultInfra()).EC2NodeClass
		if !reflect.DeepEqual(wrapper, before) {
			t.Error("the wrapper was changed")
		}
		roots := 0
		for _, mapping := range with.Spec.BlockDeviceMappings {
			if *mapping.DeviceName == merge.RootDevice || mapping.RootVolume != nil && *mapping.RootVolume {
				roots++
				if *mapping.EBS.VolumeType != "io2" || *mapping.EBS.IOPS != 100 ||
					mapping.EBS.VolumeSize.String() != "75Gi" || mapping.EBS.KMSKeyID != nil {
					t.Errorf("root volume %+v", mapping.EBS)
				}
			}
		}
		if roots != 1 {
			t.Errorf("%d root volumes with the disks %v, want 1", roots, disks)
		}
		with.Spec.BlockDeviceMappings, without.Spec.BlockDeviceMappings = nil, nil
		if !reflect.DeepEqual(with, without) {
			t.Errorf("with a policy\n%+v, without\n%+v", with, without)
		}
	}
}
