// Package rights has the policies for a controller on AWS: those for users of Joiner (deploy/aws), and the one that
// Karpenter publishes, which must be enough for Joiner (E-58). Tests check every call against both.
package rights

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

// Names are the names of a user's account that replace the placeholders of policies. All are required.
type Names struct {
	Partition string // aws, aws-cn, aws-us-gov
	Region    string
	Account   string
	Cluster   string
	NodeRole  string // with its path, without a slash before it
	Queue     string
}

func (n Names) filled(policy []byte) ([]byte, error) {
	return deploy.FillAWS(policy, map[string]string{
		"AWS_PARTITION": n.Partition, "AWS_REGION": n.Region, "AWS_ACCOUNT": n.Account, "CLUSTER": n.Cluster,
		"NODE_ROLE": n.NodeRole, "QUEUE": n.Queue,
	})
}

// Text returns one of the policies below deploy/aws, filled in.
func Text(file string, n Names) ([]byte, error) {
	text, err := deploy.AWSPolicy(file)
	if err != nil {
		return nil, err
	}
	if text, err = n.filled(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// Controller returns the policy for everything that a cluster may need.
func Controller(n Names) (*iampolicy.Policy, error) { return parsed(Text(deploy.AWSController, n)) }

// Small returns the policy for a cluster whose classes have spec.instanceProfile, without a queue.
func Small(n Names) (*iampolicy.Policy, error) { return parsed(Text(deploy.AWSSmall, n)) }

// Karpenter returns the policy that Karpenter publishes, from the facts in this package.
func Karpenter(n Names) (*iampolicy.Policy, error) {
	text, err := karpenterText()
	if err != nil {
		return nil, err
	}
	return parsed(n.filled(text))
}

func parsed(text []byte, err error) (*iampolicy.Policy, error) {
	if err != nil {
		return nil, err
	}
	return iampolicy.Parse(text)
}

// UsersOwn returns why the user must grant a right that no policy has, "" if it is not such a right.
// spec.amiSelectorTerms may name any parameter of the Systems Manager by ssmParameter, and no policy can know those
// that are not AWS's.
func UsersOwn(action, resource string) string {
	own := iampolicy.MatchARN("arn:*:ssm:*:*:parameter/*", resource) &&
		!iampolicy.MatchARN("arn:*:ssm:*::parameter/aws/*", resource)
	if action == "ssm:GetParameter" && own {
		return "a parameter of the user's own, which a class names"
	}
	return ""
}

// Owned returns the tags of everything that a controller creates for a cluster.
func Owned(n Names) map[string]string {
	return map[string]string{
		"kubernetes.io/cluster/" + n.Cluster: "owned", "eks:eks-cluster-name": n.Cluster,
		"karpenter.sh/nodepool":          "default",
		"karpenter.k8s.aws/ec2nodeclass": "default", "topology.kubernetes.io/region": n.Region,
	}
}

// OfUpkeep returns the rights of the controller's policy that package plug needs beside machines, as prefixes:
// statement and action. A test there uses them; a test of package ec2 uses all others.
func OfUpkeep() []string {
	return []string{
		"LookAtTheRegion: ec2:DescribeInstanceStatus",  // E-53
		"LookAtTheCluster: eks:DescribeCluster",        // E-16
		"NameOwnInstances: ec2:CreateTags",             // E-57
		"NameOwnInstances: ForAllValues:StringEquals",  // E-57
		"ListProfiles: iam:ListInstanceProfiles",       // E-56
		"ChangeOwnProfiles: iam:DeleteInstanceProfile", // E-56
		"ReadTheQueue: sqs:GetQueueUrl",                // E-51
	}
}
