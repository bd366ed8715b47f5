package rights

import (
	"encoding/json"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

// fact is one permission of Karpenter's policies: each action on each resource, under conditions.
type fact struct {
	actions string // service, colon, and the actions, separated by spaces
	on      string // kinds of resources of EC2, separated by spaces; or ARNs; or *
	// asked are tags that the request must set, has are tags that the resource must have, by key. * is any value. A
	// tag with a question mark after the value may be missing.
	asked, has tags
	keys       []string            // the only tags that may be set
	context    map[string][]string // other keys, with their allowed values
}

type tags map[string]string

// The tags in the conditions of Karpenter's policies.
func cluster() tags {
	return tags{"kubernetes.io/cluster/${CLUSTER}": "owned", "eks:eks-cluster-name": "${CLUSTER}",
		"karpenter.sh/nodepool": "*"}
}

func ofCluster() tags {
	return tags{"kubernetes.io/cluster/${CLUSTER}": "owned", "karpenter.sh/nodepool": "*"}
}

func profile() tags {
	return tags{"kubernetes.io/cluster/${CLUSTER}": "owned", "topology.kubernetes.io/region": "${AWS_REGION}",
		"karpenter.k8s.aws/ec2nodeclass": "*"}
}

func newProfile() tags {
	all := profile()
	all["eks:eks-cluster-name"] = "${CLUSTER}"
	return all
}

const (
	anyProfile = "arn:${AWS_PARTITION}:iam::${AWS_ACCOUNT}:instance-profile/*"
	made       = "fleet instance volume network-interface launch-template spot-instances-request"
)

// karpenterFacts returns what the six policies of Karpenter's controller allow, in our words. Source: "CloudFormation"
// in the reference of its documentation (website/content/en/preview/reference/cloudformation.md at commit 0086fec of
// 2026), compared with the policies for existing clusters (getting-started/adding-karpenter-to-existing-eks/policies
// at 1da9448). Its zonal shift policy is left out: Joiner does not ask about zonal shifts.
func karpenterFacts() []fact {
	here := map[string][]string{iampolicy.RequestedRegion: {"${AWS_REGION}"}}
	return []fact{
		{actions: "ec2:RunInstances CreateFleet",
			on: "image snapshot security-group subnet capacity-reservation placement-group"},
		{actions: "ec2:RunInstances CreateFleet", on: "launch-template", has: ofCluster()},
		{actions: "ec2:RunInstances CreateFleet CreateLaunchTemplate", on: made, asked: cluster()},
		{actions: "ec2:CreateTags", on: made, asked: cluster(), context: map[string][]string{
			iampolicy.CreateAction: {"RunInstances", "CreateFleet", "CreateLaunchTemplate"}}},
		{actions: "ec2:CreateTags", on: "instance", has: ofCluster(),
			asked: tags{"eks:eks-cluster-name": "${CLUSTER}?"},
			keys:  []string{"eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"}},
		{actions: "ec2:TerminateInstances DeleteLaunchTemplate", on: "instance launch-template", has: ofCluster()},
		{actions: "ec2:DescribeCapacityReservations DescribeImages DescribeInstances DescribeInstanceStatus " +
			"DescribeInstanceTypeOfferings DescribeInstanceTypes DescribeLaunchTemplates DescribePlacementGroups " +
			"DescribeSecurityGroups DescribeSpotPriceHistory DescribeSubnets", on: "*", context: here},
		{actions: "ssm:GetParameter", on: "arn:${AWS_PARTITION}:ssm:${AWS_REGION}::parameter/aws/service/*"},
		{actions: "pricing:GetProducts", on: "*"},
		{actions: "sqs:DeleteMessage GetQueueUrl ReceiveMessage",
			on: "arn:${AWS_PARTITION}:sqs:${AWS_REGION}:${AWS_ACCOUNT}:${QUEUE}"},
		{actions: "eks:DescribeCluster",
			on: "arn:${AWS_PARTITION}:eks:${AWS_REGION}:${AWS_ACCOUNT}:cluster/${CLUSTER}"},
		{actions: "iam:PassRole", on: "arn:${AWS_PARTITION}:iam::${AWS_ACCOUNT}:role/${NODE_ROLE}",
			context: map[string][]string{
				iampolicy.PassedToService: {"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}},
		{actions: "iam:GetInstanceProfile", on: anyProfile},
		{actions: "iam:ListInstanceProfiles", on: "*"},
		{actions: "iam:CreateInstanceProfile", on: anyProfile, asked: newProfile()},
		{actions: "iam:TagInstanceProfile", on: anyProfile, asked: newProfile(), has: profile()},
		{actions: "iam:AddRoleToInstanceProfile RemoveRoleFromInstanceProfile DeleteInstanceProfile", on: anyProfile,
			has: profile()},
	}
}

// karpenterText returns the facts as a policy, with placeholders.
func karpenterText() ([]byte, error) {
	var statements []map[string]any
	for _, f := range karpenterFacts() {
		service, names, _ := strings.Cut(f.actions, ":")
		var actions, resources []string
		for _, name := range strings.Fields(names) {
			actions = append(actions, service+":"+name)
		}
		for _, kind := range strings.Fields(f.on) {
			resources = append(resources, resource(kind))
		}
		s := map[string]any{"Effect": "Allow", "Action": actions, "Resource": resources}
		if c := f.conditions(); len(c) > 0 {
			s["Condition"] = c
		}
		statements = append(statements, s)
	}
	return json.Marshal(map[string]any{"Version": iampolicy.Version, "Statement": statements})
}

// resource returns the ARN of all resources of an EC2 kind. Those of images and snapshots have no account.
func resource(kind string) string {
	switch {
	case kind == "*" || strings.HasPrefix(kind, "arn:"):
		return kind
	case kind == "image" || kind == "snapshot":
		return "arn:${AWS_PARTITION}:ec2:${AWS_REGION}::" + kind + "/*"
	}
	return "arn:${AWS_PARTITION}:ec2:${AWS_REGION}:*:" + kind + "/*"
}

func (f *fact) conditions() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	add := func(operator, key string, values ...string) {
		if all[operator] == nil {
			all[operator] = map[string][]string{}
		}
		all[operator][key] = values
	}
	for prefix, of := range map[string]tags{iampolicy.RequestTag: f.asked, iampolicy.ResourceTag: f.has} {
		for key, value := range of {
			operator := "StringLike" // the same as StringEquals for names, which have no asterisk
			exact, may := strings.CutSuffix(value, "?")
			if may {
				operator = "StringLikeIfExists"
			}
			add(operator, prefix+key, exact)
		}
	}
	if len(f.keys) > 0 {
		add("ForAllValues:StringEquals", iampolicy.TagKeys, f.keys...)
	}
	for key, values := range f.context {
		add("StringEquals", key, values...)
	}
	return all
}
