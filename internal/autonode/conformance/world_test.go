package conformance_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
)

const (
	instanceType = corev1.LabelInstanceTypeStable
	zone         = corev1.LabelTopologyZone
	gkeZone      = "topology.gke.io/zone"
	arch         = corev1.LabelArchStable
	team         = "example.com/team"
	gpus         = "karpenter.k8s.aws/instance-gpu-count"
)

// Times of the world, in this order.
func at(minutes int) time.Time {
	return time.Date(2026, time.November, 23, 8, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
}

const (
	protected = -1000 // minutes: when the guest was protected for the first time
	began     = 0     // the process
	changed   = 100   // the policy's present generation
	made      = 200   // everything else
	now       = 300
)

type entry = karpenterv1.NodeSelectorRequirementWithMinValues

func in(key string, values ...string) entry {
	return entry{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func meta(name string, minutes int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.Time{
		Time: at(minutes),
	}}
}

// conforming is a cluster with one object of each kind, all as the policy wants them.
func conforming() conformance.Input {
	policy := &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: meta("default", protected)}
	policy.Generation = 3
	policy.Spec.NodePoolDefaults.Requirements = []entry{
		{Key: instanceType, Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b", "c"}, MinValues: new(2)},
		{Key: zone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"z9"}}, in(team, "red", "blue"),
	}
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{
		VolumeSize: new(resource.MustParse("75Gi")), VolumeType: new("gp3"), Encrypted: new(true),
		IOPS: new(int64(3000)), Throughput: new(int64(125)),
	}
	class := awsv1.EC2NodeClass{ObjectMeta: meta("c", made)}
	class.Spec = awsv1.EC2NodeClassSpec{
		AMIFamily: new("Custom"), AMISelectorTerms: []awsv1.AMISelectorTerm{{ID: "ami-1"}},
		UserData: new("ignite"), InstanceProfile: new("nodes"),
		BlockDeviceMappings: []awsv1.BlockDeviceMapping{
			{DeviceName: new("/dev/xvda"), RootVolume: new(true), EBS: &awsv1.BlockDevice{
				VolumeSize: new(resource.MustParse("75Gi")), VolumeType: new("gp3"), Encrypted: new(true),
				IOPS: new(int64(3000)), Throughput: new(int64(125)),
			}}},
		Tags: map[string]string{"team": "red"},
	}
	pool := karpenterv1.NodePool{ObjectMeta: meta("p", made)}
	pool.Spec.Template.ObjectMeta.Labels = map[string]string{team: "red"}
	pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
		Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: "c",
	}
	pool.Spec.Template.Spec.Requirements = append(policy.DeepCopy().Spec.NodePoolDefaults.Requirements,
		in(instanceType, "b", "c"))
	labels := map[string]string{instanceType: "b", zone: "z1", arch: "amd64", team: "red",
		karpenterv1.NodePoolLabelKey: "p"}
	claim := karpenterv1.NodeClaim{ObjectMeta: meta("k", made)}
	claim.Labels = labels
	claim.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "p", UID: pool.UID},
	}
	claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	claim.Spec.Requirements = []entry{in(instanceType, "b"), in(zone, "z1", "z2"), in(team, "red")}
	claim.Status.ProviderID, claim.Status.ImageID = "aws:///z1/i-1", "ami-1"
	node := corev1.Node{ObjectMeta: meta("n", made), Spec: corev1.NodeSpec{ProviderID: "aws:///z1/i-1"}}
	node.Labels = map[string]string{karpenterv1.NodeRegisteredLabelKey: "true"}
	for key, value := range labels {
		node.Labels[key] = value
	}
	return conformance.Input{
		Policy: policy, Settings: conformance.DefaultSettings(), Now: at(now),
		Memory: conformance.Memory{
			Began: at(began), Protected: at(protected), PolicySince: at(changed),
			Images: map[string]bool{"ami-1": true}, Profile: "nodes",
			Written: map[conformance.Product]conformance.Written{
				{Kind: "NodePool", Name: "p"}: {UID: pool.UID, Policy: 3},
				{Kind: "EC2NodeClass", Name: "c"}: {UID: class.UID, Policy: 3,
					Class: class.DeepCopy().Spec.DeepCopy()},
			},
		},
		Objects: conformance.Objects{
			Pools: []karpenterv1.NodePool{pool}, Classes: []awsv1.EC2NodeClass{class},
			Claims: []karpenterv1.NodeClaim{claim}, Nodes: []corev1.Node{node},
		},
	}
}

// world is a cluster in the hands of a test, with its only objects by hand.
type world struct {
	*conformance.Input
	pool  *karpenterv1.NodePool
	class *awsv1.EC2NodeClass
	claim *karpenterv1.NodeClaim
	node  *corev1.Node
}

func newWorld() world {
	input := conforming()
	o := &input.Objects
	return world{Input: &input, pool: &o.Pools[0], class: &o.Classes[0], claim: &o.Claims[0], node: &o.Nodes[0]}
}

// wrote changes what the operator remembers of a product.
func (w world) wrote(kind, name string, change func(*conformance.Written)) {
	product := conformance.Product{Kind: kind, Name: name}
	record := w.Memory.Written[product]
	change(&record)
	w.Memory.Written[product] = record
}

func (w world) forgets(kind, name string) {
	delete(w.Memory.Written, conformance.Product{Kind: kind, Name: name})
}

func time0() time.Time { return time.Time{} }
