package plug

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
)

// This file builds a cluster as Karpenter's AWS provider leaves it, as of release 1.15.1, compared with 1.9.3 and
// 1.0.8:
//
//   - class: pkg/apis/v1/labels.go, pkg/controllers/nodeclass, pkg/controllers/nodeclass/hash
//   - claim: pkg/cloudprovider/cloudprovider.go (Create), pkg/controllers/nodeclaim/tagging
//   - instance and volume: pkg/utils/utils.go (GetTags); the instance's name, and that of its claim, once it has
//     registered
//   - launch template: pkg/providers/launchtemplate
//   - instance profile: pkg/apis/v1/ec2nodeclass.go (InstanceProfileName, InstanceProfileTags),
//     pkg/providers/instanceprofile

const (
	peerProfile  = clusterName + "_15263850463527461230" // by chance
	peerTemplate = awsv1.Group + "/10241385209148365772"
	peerHash     = "5763643673275251833"
	taggedKey    = awsv1.Group + "/tagged"
	namedKey     = "compatibility." + awsv1.Group + "/cluster-name-tagged"
	poolName     = "web"
)

// peer is a cluster that Karpenter has left, in a region.
type peer struct {
	*region
	version string // of its hash
	ec2     *awsec2.Client
	images  []ec2types.Image
	image   ec2types.Image // of the claims
	subnets []ec2types.Subnet
	group   string
}

// newPeer returns a cluster with a class that is ready.
func newPeer(t *testing.T, version string) *peer {
	t.Helper()
	p := &peer{region: newRegion(t, nil), version: version}
	p.ec2 = awsec2.NewFromConfig(p.server.OthersConfig())
	images, err := p.ec2.DescribeImages(t.Context(), &awsec2.DescribeImagesInput{Owners: []string{"self", "amazon"}})
	p.must(err)
	subnets, err := p.ec2.DescribeSubnets(t.Context(), &awsec2.DescribeSubnetsInput{})
	p.must(err)
	groups, err := p.ec2.DescribeSecurityGroups(t.Context(), &awsec2.DescribeSecurityGroupsInput{})
	p.must(err)
	p.images, p.subnets, p.group = images.Images, subnets.Subnets, *groups.SecurityGroups[0].GroupId
	slices.SortFunc(p.images, func(a, b ec2types.Image) int { return strings.Compare(*a.Name, *b.Name) })
	p.image = p.images[slices.IndexFunc(p.images,
		func(i ec2types.Image) bool { return strings.Contains(*i.Name, "x86_64-standard") })]
	p.server.AddInstanceProfileAt("/karpenter/us-east-1/"+clusterName+"/uid-of-default/", peerProfile, "nodes",
		map[string]string{
			tag.Owner(clusterName): "owned", tag.ClusterName: clusterName, tag.Class: "default",
			corev1.LabelTopologyRegion: "us-east-1",
		})
	p.add(p.nodeClass(groups.SecurityGroups[0]))
	return p
}

func (p *peer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// add stores an object with its status.
func (p *peer) add(o client.Object) {
	p.t.Helper()
	whole, is := o.DeepCopyObject().(client.Object)
	if !is {
		p.t.Fatalf("%T is no object", o)
	}
	p.must(p.kube.Create(p.t.Context(), o))
	if _, isNode := o.(*corev1.Node); isNode {
		return
	}
	whole.SetResourceVersion(o.GetResourceVersion())
	p.must(p.kube.Status().Update(p.t.Context(), whole))
}

func (p *peer) nodeClass(group ec2types.SecurityGroup) *awsv1.EC2NodeClass {
	c := aClass("default")
	c.Finalizers = []string{"karpenter.k8s.aws/termination"}
	c.Annotations = map[string]string{
		"karpenter.k8s.aws/ec2nodeclass-hash": peerHash, "karpenter.k8s.aws/ec2nodeclass-hash-version": p.version,
	}
	c.Status.InstanceProfile = peerProfile
	c.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: p.group, Name: aws.ToString(group.GroupName)}}
	for _, s := range p.subnets {
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: *s.SubnetId, Zone: *s.AvailabilityZone,
			ZoneID: *s.AvailabilityZoneId})
	}
	for _, i := range p.images {
		c.Status.AMIs = append(c.Status.AMIs,
			awsv1.AMI{ID: *i.ImageId, Name: *i.Name, Requirements: requirementsBy(*i.Name)})
	}
	for _, kind := range []string{"AMIsReady", "InstanceProfileReady", "Ready", "SecurityGroupsReady", "SubnetsReady",
		"ValidationSucceeded"} {
		c.Status.Conditions = append(c.Status.Conditions, yes(kind, 1))
	}
	return c
}

// requirementsBy returns an image's requirements by its variant and architecture (pkg/providers/amifamily/types.go).
func requirementsBy(name string) []corev1.NodeSelectorRequirement {
	const accelerators, gpus = "karpenter.k8s.aws/instance-accelerator-count", "karpenter.k8s.aws/instance-gpu-count"
	arch := "amd64"
	if strings.Contains(name, "arm64") {
		arch = "arm64"
	}
	list := []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
	}
	switch {
	case strings.Contains(name, "nvidia"):
		return append(list, corev1.NodeSelectorRequirement{Key: gpus, Operator: corev1.NodeSelectorOpExists})
	case strings.Contains(name, "neuron"):
		return append(list, corev1.NodeSelectorRequirement{Key: accelerators, Operator: corev1.NodeSelectorOpExists})
	}
	return append([]corev1.NodeSelectorRequirement{{Key: accelerators, Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: gpus, Operator: corev1.NodeSelectorOpDoesNotExist}}, list...)
}

func yes(kind string, generation int64) karpenterv1.Condition {
	return karpenterv1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind,
		ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))}
}

// launch has Karpenter launch an instance of a type some time ago. Nobody has tagged it with its names yet.
func (p *peer) launch(kind string, ago time.Duration) string {
	p.t.Helper()
	p.server.Advance(-ago)
	defer p.server.Advance(ago)
	tags := map[string]string{
		tag.Owner(clusterName): "owned", "karpenter.sh/nodepool": poolName, tag.ClusterName: clusterName,
		tag.Class: "default",
	}
	if !slices.Contains(p.server.LaunchTemplates(), peerTemplate) {
		_, err := p.ec2.CreateLaunchTemplate(p.t.Context(), &awsec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String(peerTemplate),
			TagSpecifications: []ec2types.TagSpecification{
				{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: tag.List(tags)},
			},
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
				ImageId: p.image.ImageId,
				IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{
					Name: aws.String(peerProfile),
				},
				NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
					{DeviceIndex: aws.Int32(0), Groups: []string{p.group}}},
			},
		})
		p.must(err)
	}
	var specifications []ec2types.TagSpecification
	for _, resource := range []ec2types.ResourceType{"instance", "volume", "fleet"} {
		specifications = append(specifications,
			ec2types.TagSpecification{ResourceType: resource, Tags: tag.List(tags)})
	}
	out, err := p.ec2.CreateFleet(p.t.Context(), &awsec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant, TagSpecifications: specifications,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(peerTemplate), Version: aws.String("$Latest")},
			Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{{
				InstanceType: ec2types.InstanceType(kind), SubnetId: p.subnets[0].SubnetId, ImageId: p.image.ImageId,
				AvailabilityZone: p.subnets[0].AvailabilityZone}},
		}},
	})
	p.must(err)
	if len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 1 {
		p.t.Fatalf("launched %+v, refused %+v", out.Instances, out.Errors)
	}
	return out.Instances[0].InstanceIds[0]
}

// bare returns a claim of Karpenter before its launch.
func (p *peer) bare(name, kind string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), Finalizers: []string{"karpenter.sh/termination"},
			Generation: 1,
			Labels: map[string]string{"karpenter.sh/nodepool": poolName, "karpenter.k8s.aws/ec2nodeclass": "default",
				"team": "blue"},
			Annotations: map[string]string{
				"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3",
				"karpenter.k8s.aws/ec2nodeclass-hash":         peerHash,
				"karpenter.k8s.aws/ec2nodeclass-hash-version": p.version,
			},
		},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: "default"},
			Resources: karpenterv1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{kind}},
				{Key: "karpenter.sh/capacity-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
			},
		},
	}
}

// claim makes a claim of Karpenter's with its instance and node, an hour old.
func (p *peer) claim(name, kind string) *karpenterv1.NodeClaim {
	p.t.Helper()
	id, zone := p.launch(kind, time.Hour), *p.subnets[0].AvailabilityZone
	node := "ip-" + strings.TrimPrefix(id, "i-") + ".ec2.internal"
	_, err := p.ec2.CreateTags(p.t.Context(),
		&awsec2.CreateTagsInput{Resources: []string{id}, Tags: tag.List(map[string]string{
			"Name": node, "karpenter.sh/nodeclaim": name})})
	p.must(err)
	c := p.bare(name, kind)
	maps.Copy(c.Annotations, map[string]string{profileKey: peerProfile, taggedKey: "true", namedKey: "true"})
	maps.Copy(c.Labels, map[string]string{
		corev1.LabelInstanceTypeStable: kind, corev1.LabelTopologyZone: zone,
		"karpenter.sh/capacity-type":         "on-demand",
		"topology.k8s.aws/zone-id":           *p.subnets[0].AvailabilityZoneId,
		"karpenter.k8s.aws/instance-tenancy": "default",
	})
	c.Status = karpenterv1.NodeClaimStatus{
		ProviderID: fmt.Sprintf("aws:///%s/%s", zone, id), ImageID: *p.image.ImageId, NodeName: node,
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("7577Mi")},
	}
	for _, kind := range []string{"Initialized", "Launched", "Ready", "Registered"} {
		c.Status.Conditions = append(c.Status.Conditions, yes(kind, 1))
	}
	p.add(c)
	labels := maps.Clone(c.Labels)
	labels["karpenter.sh/registered"], labels["karpenter.sh/initialized"] = "true", "true"
	p.add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels, Finalizers: []string{"karpenter.sh/termination"}},
		Spec:       corev1.NodeSpec{ProviderID: c.Status.ProviderID},
		Status:     corev1.NodeStatus{Capacity: c.Status.Capacity, Allocatable: c.Status.Capacity},
	})
	return c
}

// claims returns all claims as they are stored, by name.
func (p *peer) claims() []karpenterv1.NodeClaim {
	p.t.Helper()
	var list karpenterv1.NodeClaimList
	p.must(p.kube.List(p.t.Context(), &list))
	return list.Items
}

// alive returns the running instances, by provider ID.
func (p *peer) alive() map[string]ec2test.Instance {
	all := map[string]ec2test.Instance{}
	for _, i := range p.server.Instances() {
		if i.State == ec2test.Running || i.State == ec2test.Pending {
			all["aws:///"+i.Zone+"/"+i.ID] = i
		}
	}
	return all
}
