package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// ec2Cluster is the name of the cluster with EC2 machines. Its manifest finds resources by this name in a tag.
	ec2Cluster = "demo"
	// ec2Boot and ec2Shut are how long instances take to start and to end. Real ones take longer than anybody likes to
	// watch.
	ec2Boot, ec2Shut = 5 * time.Second, 5 * time.Second
)

// stayEC2 runs a cluster in the foreground. For Joiner its nodes are EC2 instances.
func stayEC2(ctx context.Context, options rig.Options) (err error) {
	options.Log = os.Stdout
	c, err := eks.Start(ctx, eks.Options{
		Rig: options, Account: account.Options{Cluster: ec2Cluster, Boot: ec2Boot, Shut: ec2Shut},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.Apply(ctx, manifest("ec2")); err != nil {
		return err
	}
	fmt.Print(ec2Text(c))
	select {
	case <-ctx.Done():
		fmt.Println("\nStopping ...")
		return nil
	case err := <-c.Rig.Cluster.Failed():
		return err
	case <-c.JoinerEnded():
		return fmt.Errorf("joiner has ended; its log is %s", c.JoinerLog())
	}
}

// ec2Text returns the text on what to try.
func ec2Text(c *eks.Cluster) string {
	var exports strings.Builder
	for _, variable := range c.Account.Env(account.You) {
		fmt.Fprintf(&exports, "  export %s\n", variable)
	}
	queue := fmt.Sprintf("%s/%s/%s", c.Account.URL(), account.ID, c.Account.Queue)
	warning := account.Warning("INSTANCE", time.Time{})
	warning = strings.ReplaceAll(warning, time.Time{}.Format(time.RFC3339), `'$(date -u +%FT%TZ)'`)
	return fmt.Sprintf(`
The cluster runs, with Joiner, a NodePool and an EC2NodeClass. Its AWS account is an endpoint on this machine that speaks EC2, SSM,
SQS, IAM, EKS and Pricing; no request leaves it, and the keys are worth nothing elsewhere. In another terminal:

  export KUBECONFIG=%s
%s
  kubectl get ec2nodeclass default -o yaml
  kubectl create deployment web --image=example.invalid/web --replicas=20
  kubectl set resources deployment web --requests=cpu=1
  kubectl get nodeclaims,nodes -o wide --watch

  aws ec2 describe-instances \
    --query 'Reservations[].Instances[].[InstanceId,InstanceType,Placement.AvailabilityZone,State.Name,PrivateDnsName]' --output table
  aws ec2 describe-launch-templates --query 'LaunchTemplates[].LaunchTemplateName'

A spot instance is taken back: send the warning, and watch its node drain and another come.

  instance=$(kubectl get nodeclaims -o jsonpath='{.items[0].status.providerID}' | sed 's|.*/||')
  aws sqs send-message --endpoint-url $AWS_ENDPOINT_URL --queue-url %s \
    --message-body '%s'

Less to do, then nothing; the instances go too:

  kubectl scale deployment web --replicas=5
  kubectl scale deployment web --replicas=0

Without a kubectl of your own: bin/controlplane kubectl ...
Joiner's log: %s

Ctrl-C stops it. The account is gone then; the state of the cluster stays in %s until make clean.
`, c.Rig.Cluster.AdminKubeconfig(), exports.String(), queue,
		strings.ReplaceAll(warning, "INSTANCE", `'$instance'`), c.JoinerLog(), c.Rig.Cluster.Dir())
}
