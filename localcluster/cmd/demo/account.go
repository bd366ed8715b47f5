package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
)

// onEC2Pods is the number of pods in the chapter on EC2: more than fit on one node.
const onEC2Pods = 12

// onEC2 is the last chapter: a cluster whose nodes are EC2 instances. Its account is an endpoint in this process.
// Everything else is as on AWS: Joiner calls it through the SDK, and each node results from its instance's user data.
func (s *story) onEC2(ctx context.Context) (err error) {
	options := s.options
	options.Log, options.NodeSchedulingPolicy = prefixed{os.Stdout, "ec2: "}, ""
	c, err := eks.Start(ctx,
		eks.Options{Rig: options, Account: account.Options{Cluster: ec2Cluster, Boot: ec2Boot, Shut: ec2Shut}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.Apply(ctx, manifest("ec2")); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "", "create", "deployment", "web",
		"--image=example.invalid/web", fmt.Sprintf("--replicas=%d", onEC2Pods)); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "", "set", "resources", "deployment", "web", "--requests=cpu=1"); err != nil {
		return err
	}
	if err := ran(ctx, c); err != nil {
		return err
	}
	s.done(
		"Another cluster, whose nodes are instances of EC2. Its account is an endpoint on this machine that speaks AWS's protocols; an " +
			"EC2NodeClass and a NodePool as a Karpenter user writes them are Ready, and 12 pods run on instances that Joiner launched")
	if err := show(ctx, c.Rig, "$", "get", "nodeclaims", "-o", "wide"); err != nil {
		return err
	}
	if err := sameStory(ctx, c); err != nil {
		return err
	}
	if err := s.takenBack(ctx, c); err != nil {
		return err
	}
	return s.allEnded(ctx, c)
}

// ran waits until all pods run.
func ran(ctx context.Context, c *eks.Cluster) error {
	return c.Eventually(ctx, placing, "the pods to run on instances", func(ctx context.Context) (bool, string, error) {
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace("default")); err != nil {
			return false, "", err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		return running == onEC2Pods, fmt.Sprintf("%d of %d run", running, onEC2Pods), nil
	})
}

// alive asks EC2 for the cluster's instances that are not ending, by id.
func alive(ctx context.Context, c *eks.Cluster) (ids []string, table string, err error) {
	out, err := ec2.NewFromConfig(c.Account.Config(account.You)).DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	if err != nil {
		return nil, "", err
	}
	var rows []string
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			if i.State.Name != "pending" && i.State.Name != "running" {
				continue
			}
			ids = append(ids, aws.ToString(i.InstanceId))
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s", aws.ToString(i.InstanceId), i.InstanceType,
				aws.ToString(i.Placement.AvailabilityZone), i.State.Name, aws.ToString(i.PrivateDnsName)))
		}
	}
	slices.Sort(ids)
	slices.Sort(rows)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	if err := w.Flush(); err != nil {
		return nil, "", err
	}
	return ids, b.String(), nil
}

// sameStory checks that EC2 has exactly the instances that the NodeClaims name, and shows them.
func sameStory(ctx context.Context, c *eks.Cluster) error {
	var claims karpenterv1.NodeClaimList
	if err := c.Client.List(ctx, &claims); err != nil {
		return err
	}
	var named []string
	for _, claim := range claims.Items {
		named = append(named, claim.Status.ProviderID[strings.LastIndex(claim.Status.ProviderID, "/")+1:])
	}
	slices.Sort(named)
	ids, table, err := alive(ctx, c)
	if err != nil {
		return err
	}
	if !slices.Equal(ids, named) {
		return fmt.Errorf("EC2 has the instances %v, and the NodeClaims name %v", ids, named)
	}
	fmt.Printf(
		"\n    $ aws ec2 describe-instances --query 'Reservations[].Instances[].[InstanceId,InstanceType,...]' --output text\n    %s\n",
		strings.ReplaceAll(strings.TrimRight(table, "\n"), "\n", "\n    "))
	return nil
}

// takenBack makes EC2 give a warning for an instance, and waits until its node was drained and another one exists.
func (s *story) takenBack(ctx context.Context, c *eks.Cluster) error {
	ids, _, err := alive(ctx, c)
	if err != nil {
		return err
	}
	queues := sqs.NewFromConfig(c.Account.Config(account.You))
	url, err := queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &c.Account.Queue})
	if err != nil {
		return err
	}
	warned, began := ids[0], time.Now()
	_, err = queues.SendMessage(ctx,
		&sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String(account.Warning(warned, began))})
	if err != nil {
		return err
	}
	err = c.Eventually(ctx, leaving, "the warned instance to be ended",
		func(ctx context.Context) (bool, string, error) {
			ids, _, err := alive(ctx, c)
			return err == nil && !slices.Contains(ids, warned), fmt.Sprintf("EC2 has %v", ids), err
		})
	if err != nil {
		return err
	}
	if err := ran(ctx, c); err != nil {
		return err
	}
	s.done(
		"EC2 warns that it takes %s back in two minutes. %.0f s later its node is drained, the instance ended, and all pods run elsewhere",
		warned, time.Since(began).Seconds())
	return show(ctx, c.Rig, "$", "get", "events", "-A", "--field-selector=reason=SpotInterrupted")
}

// allEnded removes the workload, and waits until EC2 has no instance left.
func (s *story) allEnded(ctx context.Context, c *eks.Cluster) error {
	if _, err := c.Kubectl(ctx, "", "scale", "deployment", "web", "--replicas=0"); err != nil {
		return err
	}
	err := c.Eventually(ctx, leaving, "all instances to be ended", func(ctx context.Context) (bool, string, error) {
		ids, _, err := alive(ctx, c)
		return err == nil && len(ids) == 0, fmt.Sprintf("EC2 has %v", ids), err
	})
	if err != nil {
		return err
	}
	if unknown := c.Account.Unknown(); len(unknown) > 0 {
		return fmt.Errorf("the account was asked for what it does not know, or does not allow: %s",
			strings.Join(unknown, "; "))
	}
	s.done(
		"The work is gone: EC2 has no instance any more. Every call that Joiner made is one that its policy in deploy/aws allows")
	return nil
}
