package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
)

// condition waits until a node class has a condition with this status and all parts in its text.
func (n *town) condition(within time.Duration, class, kind, status string, parts ...string) {
	n.t.Helper()
	n.eventually(within, fmt.Sprintf("EC2NodeClass %s with %s %s and %q", class, kind, status, parts),
		func(ctx context.Context) (bool, string, error) {
			var list awsv1.EC2NodeClassList
			if err := n.Client.List(ctx, &list); err != nil {
				return false, "", err
			}
			saw := ""
			for _, c := range list.Items {
				for _, have := range c.Status.Conditions {
					if c.Name != class || string(have.Type) != kind {
						continue
					}
					saw = fmt.Sprintf("%s %s: %s", have.Status, have.Reason, have.Message)
					if string(have.Status) == status && have.ObservedGeneration == c.Generation &&
						!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(saw, part) }) {
						return true, "", nil
					}
				}
			}
			return false, saw, nil
		})
}

// instancesBy counts instances by a property of theirs.
func (n *town) instancesBy(what func(ec2test.Instance) string) map[string]int {
	counts := map[string]int{}
	for _, i := range n.Account.Instances() {
		if i.State == ec2test.Pending || i.State == ec2test.Running {
			counts[what(i)]++
		}
	}
	return counts
}

func (n *town) faults(f ec2test.Faults) {
	n.t.Helper()
	if err := n.Account.SetFaults(f); err != nil {
		n.t.Fatal(err)
	}
}

// E-12, E-43, E-60, E-73: when EC2 says no, planning goes elsewhere or waits, and says so.
func TestTrouble(t *testing.T) {
	t.Parallel()
	n := newTown(t, func(o *eks.Options) { o.Rig.WithoutJoiner = true })
	full := n.Account.Subnets[0]
	n.faults(ec2test.Faults{
		FreeAddresses: map[string]int{full.ID: 0},
		Deny:          []ec2test.Denial{{Action: "ec2:CreateFleet"}},
	})
	if err := n.StartJoiner(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.apply(class("default", ""), pool("default", "default", plain+amd64+spotToo, quick))
	for _, step := range []struct {
		name string
		do   func(full ec2test.Subnet)
	}{
		{"rights", n.missingRights}, {"subnet", n.fullSubnet}, {"quota", n.quota}, {"throttling", n.throttling},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			outer := n.t
			n.t = t
			defer func() { n.t = outer }()
			step.do(full)
		}) {
			return
		}
	}
}

// missingRights: the class says which right is missing, and nothing is launched until it is there.
func (n *town) missingRights(ec2test.Subnet) {
	n.condition(soon, "default", "ValidationSucceeded", "False", "CreateFleetAuthCheckFailed", "ec2:CreateFleet")
	n.condition(soon, "default", "Ready", "False")
	n.apply(deployment("web", 3, "{cpu: 1}", apart("web")))
	n.faults(ec2test.Faults{})
	n.apply(class("default", "tags: {team: web}")) // a class that is changed is tried again
	n.condition(soon, "default", "Ready", "True")
	n.running(3, later)
}

// fullSubnet: the zone without addresses is left out, and a pod that insists on it gets an event.
func (n *town) fullSubnet(full ec2test.Subnet) {
	zones := n.instancesBy(func(i ec2test.Instance) string { return i.Zone })
	if zones[full.Zone] != 0 || len(zones) == 0 {
		n.t.Errorf("instances by zone: %v, want none in %s, whose subnet is full", zones, full.Zone)
	}
	n.apply(deployment("insists", 1, "{cpu: 1}", "nodeSelector: {topology.kubernetes.io/zone: "+full.Zone+"}"))
	n.said(soon, "FailedScheduling", "To do: ", full.Zone)
	if zones := n.instancesBy(func(i ec2test.Instance) string { return i.Zone }); zones[full.Zone] != 0 {
		n.t.Errorf("instances by zone: %v, want none in %s", zones, full.Zone)
	}
	n.empty()
}

// empty deletes all work and waits until nothing is left.
func (n *town) empty() {
	n.t.Helper()
	n.kubectl("delete", "deployment", "--all")
	n.nothingLeft(later)
}

// quota: instances beyond the account's quota for spot come on demand, and an event names the quota.
func (n *town) quota(ec2test.Subnet) {
	n.faults(ec2test.Faults{Quotas: []ec2test.Quota{{Group: "standard", CapacityType: "spot", VCPUs: 16}}})
	n.apply(deployment("large", 4, "{cpu: 5}", apart("large")))
	n.running(4, later)
	kinds := n.instancesBy(func(i ec2test.Instance) string { return i.CapacityType })
	if kinds["spot"] == 0 || kinds["spot"] > 2 || kinds["spot"]+kinds["on-demand"] != 4 {
		n.t.Errorf("instances by capacity type: %v, want spot up to the quota of 16 vCPUs and the rest on demand",
			kinds)
	}
	n.said(soon, "QuotaExceeded", account.Region)
	n.empty()
}

// throttling: launches come late, none is given up, and none is made twice.
func (n *town) throttling(ec2test.Subnet) {
	n.faults(ec2test.Faults{Throttle: map[string]ec2test.Bucket{"ec2:CreateFleet": {Rate: 0.5, Burst: 1}}})
	n.Account.Forget()
	var all []string
	for i := range 5 { // different enough for a fleet each
		all = append(all, deployment(fmt.Sprintf("kind-%d", i), 1, "{cpu: 1}",
			"nodeSelector: {karpenter.k8s.aws/instance-cpu: \""+fmt.Sprint([]int{2, 4, 8, 16, 32}[i])+"\"}"))
	}
	n.apply(all...)
	n.running(5, later)
	refused, claims := 0, map[string]bool{}
	for _, call := range n.Account.Calls() {
		if call.Action == "CreateFleet" && call.Code == "RequestLimitExceeded" {
			refused++
		}
	}
	for _, i := range n.Account.Instances() {
		if i.State == ec2test.Running {
			claims[i.Tags["joiner.sh/launch"]+i.Tags["karpenter.sh/nodeclaim"]] = true
		}
	}
	instances, err := n.instances(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	if refused == 0 || len(instances) != 5 || len(claims) != 5 {
		n.t.Errorf(
			"%d calls were throttled, there are %d instances for %d launches: want some throttled and 5 instances for 5 launches",
			refused, len(instances), len(claims))
	}
	n.faults(ec2test.Faults{})
	n.empty()
}
