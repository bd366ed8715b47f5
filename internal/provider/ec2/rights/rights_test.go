package rights_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/rights"
)

const region = "eu-west-1"

func names() rights.Names {
	return rights.Names{Partition: "aws", Region: region, Account: "111122223333", Cluster: "c1",
		NodeRole: "team/nodes", Queue: "events"}
}

func policies(t *testing.T) (controller, small, karpenter *iampolicy.Policy) {
	t.Helper()
	var list []*iampolicy.Policy
	for _, read := range []func(rights.Names) (*iampolicy.Policy, error){rights.Controller, rights.Small,
		rights.Karpenter} {
		p, err := read(names())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list[0], list[1], list[2]
}

// requests returns many requests: every action in a policy, on every resource in one and on resources outside the
// cluster, with allowed and with forbidden tags.
func requests(of ...*iampolicy.Policy) (list []iampolicy.Request) {
	actions, resources := map[string]bool{"ec2:StopInstances": true, "iam:CreateRole": true}, map[string]bool{
		"arn:aws:ec2:us-east-1:111122223333:instance/i-1": true, "arn:aws:iam::111122223333:role/admin": true,
		"arn:aws:ec2:eu-west-1:111122223333:key-pair/k":                           true,
		"arn:aws:ssm:eu-west-1:111122223333:parameter/mine":                       true,
		"arn:aws:iam::111122223333:instance-profile/karpenter/eu-west-1/c2/uid/p": true,
	}
	for _, p := range of {
		for _, r := range p.Rights() {
			if action, resource, is := strings.Cut(r.What, " on "); is {
				actions[action] = true
				if resource != "*" {
					resource = strings.ReplaceAll(strings.ReplaceAll(resource, ":*:", ":111122223333:"), "*", "x")
				}
				resources[resource] = true
			}
		}
	}
	owned := rights.Owned(names())
	without := func(key string) map[string]string {
		tags := maps.Clone(owned)
		delete(tags, key)
		return tags
	}
	theirs := names()
	theirs.Cluster = "c2"
	sets := []map[string]string{nil, owned, rights.Owned(theirs), {"Name": "n", "karpenter.sh/nodeclaim": "n"},
		{"Name": "n", "x": "y"},
		without("karpenter.sh/nodepool"), without("eks:eks-cluster-name"), without("karpenter.k8s.aws/ec2nodeclass"),
		without("kubernetes.io/cluster/c1")}
	contexts := []map[string]string{
		nil, {iampolicy.RequestedRegion: "us-east-1", iampolicy.CreateAction: "CreateVolume",
			iampolicy.PassedToService: "lambda.amazonaws.com"}, {iampolicy.RequestedRegion: region,
			iampolicy.PassedToService: "ec2.amazonaws.com"}}
	for _, made := range []string{"RunInstances", "CreateFleet", "CreateLaunchTemplate"} {
		contexts = append(contexts, map[string]string{iampolicy.CreateAction: made})
	}
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		service, _, _ := strings.Cut(action, ":")
		for _, resource := range slices.Sorted(maps.Keys(resources)) {
			if resource != "*" && strings.Split(resource, ":")[2] != service {
				continue
			}
			for _, asked := range sets {
				for _, has := range sets {
					for _, context := range contexts {
						list = append(list, iampolicy.Request{Action: action, Resource: resource, RequestTags: asked,
							ResourceTags: has, Context: context})
					}
				}
			}
		}
	}
	return list
}

// E-58: everything that our policy allows, Karpenter's allows; and the small one allows nothing that ours does not.
func TestNoPolicyGivesMoreThanKarpenters(t *testing.T) {
	t.Parallel()
	controller, small, karpenter := policies(t)
	allowed := [3]int{}
	for _, r := range requests(controller, karpenter) {
		a, b, c := small.Decide(r).Allowed, controller.Decide(r).Allowed, karpenter.Decide(r).Allowed
		if a && !b || b && !c {
			t.Fatalf("%+v: the small policy %v, the controller's %v, Karpenter's %v", r, a, b, c)
		}
		for i, yes := range []bool{a, b, c} {
			if yes {
				allowed[i]++
			}
		}
	}
	if allowed[0] == 0 || allowed[1] <= allowed[0] || allowed[2] <= allowed[1] {
		t.Errorf("%d, %d and %d questions are allowed: each policy is to have more than the one before", allowed[0],
			allowed[1], allowed[2])
	}
}

// E-58: a policy must fit AWS's limits with the longest names: 10,240 characters for the inline policies of a role,
// 6,144 for a managed policy. Space does not count. Source: "IAM and AWS STS quotas".
func TestPoliciesFit(t *testing.T) {
	t.Parallel()
	longest := rights.Names{Partition: "aws-us-gov", Region: "ap-northeast-1", Account: "111122223333",
		Cluster: strings.Repeat("c", 100), NodeRole: strings.Repeat("r", 64), Queue: strings.Repeat("q", 80)}
	for file, most := range map[string]int{deploy.AWSController: 10240, deploy.AWSSmall: 10240} {
		size := 0
		for n, limit := range map[rights.Names]int{names(): most, longest: most} {
			text, err := rights.Text(file, n)
			if err != nil {
				t.Fatal(err)
			}
			size = len(strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) {
					return -1
				}
				return r
			}, string(text)))
			if size > limit {
				t.Errorf("%s has %d characters with %+v, at most %d", file, size, n, limit)
			}
			t.Logf("%s: %d with a cluster's name of %d", file, size, len(n.Cluster))
		}
	}
}

// E-58: the only right that users must add themselves is the one for a parameter that is not AWS's.
func TestRightsOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]bool{
		"arn:aws:ssm:us-east-1:1:parameter/mine":             true,
		"arn:aws:ssm:us-east-1:1:parameter/aws/mine":         true, // of the account, whatever it is called
		"arn:aws:ssm:us-east-1::parameter/aws/service/eks/x": false,
		"*": false,
	} {
		if got := rights.UsersOwn("ssm:GetParameter", resource) != ""; got != want ||
			rights.UsersOwn("ssm:GetParameters", resource) != "" {
			t.Errorf("%s: %v, want %v, and never for another action", resource, got, want)
		}
	}
}
