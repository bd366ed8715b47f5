package ec2

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/boot"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/kubelets"
)

// E-28, E-31, E-32, E-34, E-46, E-55, E-57: 200 pods of several kinds get nodes. Kubernetes and EC2 say the same about
// each node. When the pods are gone, so are the instances.
func TestTwoHundredPods(t *testing.T) {
	t.Parallel()
	n := newTown(t, nil)
	n.apply(
		class("default",
			"tags: {team: web}\nblockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 50Gi, volumeType: gp3, encrypted: true}}]"),
		pool("default", "default", plain+spotToo+"\n- {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}",
			quick),
		deployment("web", 100, "{cpu: 500m, memory: 1Gi}", ""),
		deployment("graviton", 30, "{cpu: 1}", "nodeSelector: {kubernetes.io/arch: arm64}"),
		deployment("zonal", 30, "{cpu: 1}",
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, "+
				"whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: zonal}}}]"),
		deployment("database", 20, "{cpu: 3, memory: 20Gi}",
			"nodeSelector: {karpenter.sh/capacity-type: on-demand, kubernetes.io/arch: amd64}"),
		deployment("small", 20, "{cpu: 100m}", "nodeSelector: {karpenter.k8s.aws/instance-category: c}"),
	)
	n.running(200, later)
	n.sameStory()
	n.kubectl("delete", "deployment", "--all")
	n.nothingLeft(later)
}

// sameStory compares what Kubernetes and EC2 say, in both directions, once everything has registered.
func (n *town) sameStory() {
	n.t.Helper()
	var claims []karpenterv1.NodeClaim
	n.eventually(soon, "every claim to be initialized and its instance to have its name",
		func(ctx context.Context) (bool, string, error) {
			var err error
			if claims, err = n.claims(ctx); err != nil {
				return false, "", err
			}
			instances, err := n.instances(ctx)
			if err != nil {
				return false, "", err
			}
			for _, c := range claims {
				i := instances[idOf(c.Status.ProviderID)]
				if c.Status.NodeName == "" || tagsOf(i.Tags)["Name"] != c.Status.NodeName {
					return false, fmt.Sprintf("claim %s has node %q, its instance the tags %v", c.Name,
						c.Status.NodeName, tagsOf(i.Tags)), nil
				}
			}
			return len(instances) == len(claims), fmt.Sprintf("%d instances for %d claims", len(instances),
					len(claims)),
				nil
		})
	instances, err := n.instances(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	list, err := n.nodes(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	nodes := map[string]corev1.Node{}
	for _, node := range list {
		nodes[idOf(node.Spec.ProviderID)] = node
	}
	if len(nodes) != len(claims) {
		n.t.Errorf("%d nodes for %d claims", len(nodes), len(claims))
	}
	for _, c := range claims {
		id := idOf(c.Status.ProviderID)
		n.compare(c, nodes[id], instances[id])
	}
}

// compare checks a claim, its node and its instance against each other.
func (n *town) compare(c karpenterv1.NodeClaim, node corev1.Node, i types.Instance) {
	n.t.Helper()
	id := aws.ToString(i.InstanceId)
	capacity := "on-demand"
	if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		capacity = "spot"
	}
	same := map[string][2]string{
		"name":     {node.Name, aws.ToString(i.PrivateDnsName)},
		"provider": {node.Spec.ProviderID, "aws:///" + aws.ToString(i.Placement.AvailabilityZone) + "/" + id},
		"image":    {c.Status.ImageID, aws.ToString(i.ImageId)},
	}
	for label, said := range map[string]string{
		corev1.LabelInstanceTypeStable: string(i.InstanceType),
		corev1.LabelTopologyZone:       aws.ToString(i.Placement.AvailabilityZone),
		"topology.k8s.aws/zone-id":     aws.ToString(i.Placement.AvailabilityZoneId),
		"karpenter.sh/capacity-type":   capacity, "karpenter.sh/nodepool": c.Labels["karpenter.sh/nodepool"],
	} {
		same["node's "+label], same["claim's "+label] = [2]string{node.Labels[label], said},
			[2]string{c.Labels[label], said}
	}
	tags := tagsOf(i.Tags)
	for key, want := range map[string]string{
		"kubernetes.io/cluster/" + name: "owned", "eks:eks-cluster-name": name,
		"karpenter.sh/nodepool":          c.Labels["karpenter.sh/nodepool"],
		"karpenter.k8s.aws/ec2nodeclass": c.Spec.NodeClassRef.Name, "karpenter.sh/nodeclaim": c.Name,
		"Name": node.Name, "team": "web",
	} {
		same["tag "+key] = [2]string{tags[key], want}
	}
	for what, pair := range same {
		if pair[0] != pair[1] {
			n.t.Errorf("%s, %s: %s is %q, want %q", c.Name, id, what, pair[0], pair[1])
		}
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		planned, has := c.Status.Allocatable[resource], node.Status.Allocatable[resource]
		if has.Cmp(planned) < 0 {
			n.t.Errorf("%s of %s has %s %s for pods, %s was planned", id, i.InstanceType, has.String(), resource,
				planned.String())
		}
	}
	n.volume(id)
	n.userData(c, id)
}

// volume checks the volume of an instance.
func (n *town) volume(id string) {
	n.t.Helper()
	out, err := n.ec2.DescribeVolumes(n.t.Context(), &ec2.DescribeVolumesInput{Filters: []types.Filter{
		{Name: aws.String("attachment.instance-id"), Values: []string{id}},
	}})
	if err != nil {
		n.t.Fatal(err)
	}
	if len(out.Volumes) != 1 {
		n.t.Fatalf("%s has %d volumes, want one", id, len(out.Volumes))
	}
	v := out.Volumes[0]
	if aws.ToInt32(v.Size) != 50 || v.VolumeType != types.VolumeTypeGp3 || !aws.ToBool(v.Encrypted) ||
		tagsOf(v.Tags)["team"] != "web" {
		n.t.Errorf("%s has a volume of %d GiB, %s, encrypted: %t, tags %v", id, aws.ToInt32(v.Size), v.VolumeType,
			aws.ToBool(v.Encrypted), tagsOf(v.Tags))
	}
}

// userData checks the user data of the instance.
func (n *town) userData(c karpenterv1.NodeClaim, id string) {
	n.t.Helper()
	data, err := kubelets.UserData(n.t.Context(), n.ec2, id)
	if err != nil {
		n.t.Fatal(err)
	}
	config, err := boot.AL2023(data)
	if err != nil {
		n.t.Fatalf("%s: %v", id, err)
	}
	pods := c.Status.Capacity[corev1.ResourcePods]
	if config.Labels["karpenter.sh/nodepool"] != c.Labels["karpenter.sh/nodepool"] ||
		int64(config.MaxPods) != pods.Value() ||
		len(config.Taints) == 0 || config.Taints[len(config.Taints)-1].Key != karpenterv1.UnregisteredTaintKey ||
		config.Cluster.CIDR == "" {
		n.t.Errorf("%s was told %+v", id, config)
	}
}

// idOf returns the instance of a provider ID.
func idOf(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

func tagsOf(list []types.Tag) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags
}
