// Package ec2 tests the EC2 provider end to end: Joiner as a process of its own, a real control plane, and instances
// of an AWS account in this process (package eks). The tests ask EC2 through the SDK.
//
// Every test has a cluster of its own. The binaries come from the environment, as for the other end-to-end tests.
package ec2

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// Generous bounds: they only matter when something is wrong, or the machine is busy with something else.
const (
	soon  = time.Minute
	later = 2 * time.Minute
)

// name is the name of the cluster on EKS.
const name = "e2e"

// town is a cluster with Joiner, and the test's own way to fail.
type town struct {
	*eks.Cluster
	t   *testing.T
	ec2 *ec2.Client
}

// newTown starts a cluster for this test alone. The test fails if the endpoint could not follow a request, or if an
// instance could not become a node. If it fails, the end of Joiner's log is printed.
func newTown(t *testing.T, change func(*eks.Options)) *town {
	t.Helper()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log = io.Discard
	all := eks.Options{
		Rig: options, Account: account.Options{Cluster: name, Boot: time.Second, Shut: time.Second},
		Every: 500 * time.Millisecond,
	}
	if change != nil {
		change(&all)
	}
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	c, err := eks.Start(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	n := &town{Cluster: c, t: t, ec2: ec2.NewFromConfig(c.Account.Config(account.You))}
	t.Cleanup(n.end)
	return n
}

func (n *town) end() {
	if n.Account != nil { // else the server belongs to somebody else
		for _, text := range n.Account.Unknown() {
			n.t.Errorf("the endpoint was asked for what it does not know: %s", text)
		}
	}
	for id, why := range n.Kubelets.Failures() {
		n.t.Errorf("instance %s did not become a node: %s", id, why)
	}
	if n.t.Failed() {
		if log, err := os.ReadFile(n.JoinerLog()); err == nil {
			lines := strings.Split(string(log), "\n")
			n.t.Logf("the end of joiner's log:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	}
	if err := n.Stop(); err != nil {
		n.t.Errorf("stopping the cluster: %v", err)
	}
}

func (n *town) apply(manifests ...string) {
	n.t.Helper()
	if err := n.Apply(n.t.Context(), strings.Join(manifests, "\n---\n")); err != nil {
		n.t.Fatal(err)
	}
}

func (n *town) kubectl(args ...string) string {
	n.t.Helper()
	output, err := n.Kubectl(n.t.Context(), "", args...)
	if err != nil {
		n.t.Fatal(err)
	}
	return output
}

// eventually waits for a condition; look says what it saw.
func (n *town) eventually(within time.Duration, what string, look func(context.Context) (bool, string, error)) {
	n.t.Helper()
	if err := n.Eventually(n.t.Context(), within, what, look); err != nil {
		output, _ := n.Kubectl(context.WithoutCancel(n.t.Context()), "", "get",
			"ec2nodeclasses,nodepools,nodeclaims,nodes", "-o", "wide")
		classes, _ := n.Kubectl(context.WithoutCancel(n.t.Context()), "", "get", "ec2nodeclasses", "-o",
			`jsonpath={range .items[*].status.conditions[?(@.status!="True")]}{.type} {.status} {.reason}: {.message}{"\n"}{end}`)
		n.t.Fatalf("%v\n%s\n%s", err, output, classes)
	}
}

func (n *town) claims(ctx context.Context) ([]karpenterv1.NodeClaim, error) {
	var list karpenterv1.NodeClaimList
	err := n.Client.List(ctx, &list)
	return list.Items, err
}

func (n *town) nodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	err := n.Client.List(ctx, &list)
	return list.Items, err
}

// running waits until there are count pods in the default namespace and all of them run.
func (n *town) running(count int, within time.Duration) {
	n.t.Helper()
	n.eventually(within, fmt.Sprintf("%d running pods", count), func(ctx context.Context) (bool, string, error) {
		var list corev1.PodList
		err := n.Client.List(ctx, &list)
		ours, running := 0, 0
		for _, pod := range list.Items {
			if pod.Namespace != "default" {
				continue
			}
			ours++
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		return running == count && ours == count, fmt.Sprintf("%d of %d pods run", running, ours), err
	})
}

// instances returns the cluster's instances according to EC2, without terminated ones, by id.
func (n *town) instances(ctx context.Context) (map[string]types.Instance, error) {
	all := map[string]types.Instance{}
	pages := ec2.NewDescribeInstancesPaginator(n.ec2, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("tag:eks:eks-cluster-name"), Values: []string{name}},
		{Name: aws.String("instance-state-name"), Values: []string{ec2test.Pending, ec2test.Running,
			ec2test.ShuttingDown}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				all[aws.ToString(i.InstanceId)] = i
			}
		}
	}
	return all, nil
}

// nothingLeft waits until there is no NodeClaim, no Node and no instance.
func (n *town) nothingLeft(within time.Duration) {
	n.t.Helper()
	n.eventually(within, "no NodeClaim, Node or instance", func(ctx context.Context) (bool, string, error) {
		claims, err := n.claims(ctx)
		if err != nil {
			return false, "", err
		}
		nodes, err := n.nodes(ctx)
		if err != nil {
			return false, "", err
		}
		instances, err := n.instances(ctx)
		saw := fmt.Sprintf("%d NodeClaims, %d nodes, %d instances", len(claims), len(nodes), len(instances))
		return len(claims)+len(nodes)+len(instances) == 0, saw, err
	})
}
