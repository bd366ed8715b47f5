package ec2

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
)

// E-61: equal nodes that come and go cost few calls. JOINER_EC2_NODES is how many there are.
func TestCallsForEqualNodes(t *testing.T) {
	t.Parallel()
	nodes := number(t, "JOINER_EC2_NODES", 20)
	n := newTown(t, wholeLog)
	n.apply(class("default", ""),
		pool("default", "default", "- {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"+
			onDemand, quick))
	n.condition(soon, "default", "Ready", "True")
	n.Account.Forget()
	began := time.Now()
	n.apply(deployment("web", nodes, "{cpu: 1500m}", "")) // one fills an m5.large
	n.running(nodes, 3*later)
	// Names are written five a second at most, and more slowly on a busy machine.
	n.eventually(3*later, "every instance to have its name", func(ctx context.Context) (bool, string, error) {
		instances, err := n.instances(ctx)
		named := 0
		for _, i := range instances {
			if tagsOf(i.Tags)["Name"] != "" {
				named++
			}
		}
		return named == nodes && len(instances) == nodes, fmt.Sprintf("%d of %d instances have a name", named,
			len(instances)), err
	})
	n.kubectl("delete", "deployment", "web")
	n.nothingLeft(3 * later)
	took := time.Since(began)
	calls := n.Account.CallsOf(account.Joiner)
	rounds := len(n.logged("planned"))
	created, launched := len(n.logged("created NodeClaim")), len(n.Account.Instances())
	t.Logf("%d nodes in %s, planned in %d rounds, as pods came; %d NodeClaims, %d instances:", nodes,
		took.Round(time.Second), rounds, created, launched)
	for _, action := range slices.Sorted(maps.Keys(calls)) {
		t.Logf("  %4d %s", calls[action], action)
	}
	asked := n.fleets()
	for what, times := range map[string][]time.Time{
		"a fleet": asked, "a plan": n.logged("planned"), "a NodeClaim": everyHundredth(n.logged("created NodeClaim")),
		"a machine launched": everyHundredth(n.logged("launched")),
	} {
		for _, at := range times {
			t.Logf("  %s %s after the first fleet", what, at.Sub(asked[0]).Round(time.Millisecond))
		}
	}
	// A busy API server shows pods and claims late, so there may be more nodes than needed for a while. Each is tagged
	// once. Claims of a round know their number: a fleet is full, or the last of its round, or nobody has come for two
	// seconds. Terminations and listings go by the clock: a busy machine needs more of them than E-61 allows an idle
	// one. Their bounds only show whether calls are gathered at all.
	fleets := 1 + nodes/100 + rounds + int(asked[len(asked)-1].Sub(asked[0])/(2*time.Second))
	ends := max(5, nodes*3/4)
	listings := 20 + int(took/(10*time.Second)) + nodes/2
	for action, most := range map[string]int{
		"ec2:CreateFleet": fleets, "ec2:CreateLaunchTemplate": 1, "ec2:TerminateInstances": ends,
		"ec2:CreateTags":        launched,
		"ec2:DescribeInstances": listings, "ec2:RunInstances": 0, "ec2:DeleteLaunchTemplate": 0,
	} {
		if calls[action] > most {
			t.Errorf("%d calls of %s for %d nodes: want %d at most", calls[action], action, nodes, most)
		}
	}
}

// E-35: the time from a claim to CreateFleet, if EC2 takes 50 ms for each answer. The bound is for busy machines, too;
// the log has the figures.
func TestFromClaimToFleet(t *testing.T) {
	t.Parallel()
	n := newTown(t, wholeLog)
	n.apply(class("default", ""), pool("default", "default", plain+amd64+onDemand, quick),
		deployment("web", 1, "{cpu: 500m}", apart("web")))
	n.running(1, later)
	n.faults(ec2test.Faults{Latency: metav1.Duration{Duration: 50 * time.Millisecond}})
	for pods := 2; pods <= 6; pods++ {
		n.kubectl("scale", "deployment", "web", fmt.Sprintf("--replicas=%d", pods))
		n.running(pods, later)
	}
	claims := n.logged("created NodeClaim")
	fleets := n.fleets()
	var took []time.Duration
	for _, at := range claims[1:] {
		next := slices.IndexFunc(fleets, func(fleet time.Time) bool { return fleet.After(at) })
		if next < 0 {
			t.Fatalf("no CreateFleet after the claim of %s", at)
		}
		took = append(took, fleets[next].Sub(at))
	}
	slices.Sort(took)
	t.Logf("from claim to CreateFleet: %v", took)
	if middle := took[len(took)/2]; middle > time.Second {
		t.Errorf("half of the launches took more than %s: E-35 wants 100 ms on a machine that is free", middle)
	}
}

// everyHundredth returns the 1st, the 101st and so on, and the last.
func everyHundredth(times []time.Time) (some []time.Time) {
	for i := 0; i < len(times)-1; i += 100 {
		some = append(some, times[i])
	}
	return append(some, times[len(times)-1])
}

// fleets returns when Joiner asked for machines.
func (n *town) fleets() (times []time.Time) {
	for _, call := range n.Account.Calls() {
		if call.Action == "CreateFleet" && !call.DryRun {
			times = append(times, call.Time)
		}
	}
	if len(times) == 0 {
		n.t.Fatal("no CreateFleet was asked for")
	}
	return times
}

// wholeLog makes Joiner write all lines of its log, even if many are alike.
func wholeLog(o *eks.Options) { o.Rig.Args = append(o.Rig.Args, "--log-format=joiner") }

// logged returns the times of Joiner's log lines with this message.
func (n *town) logged(message string) []time.Time {
	n.t.Helper()
	log, err := os.ReadFile(n.JoinerLog())
	if err != nil {
		n.t.Fatal(err)
	}
	var times []time.Time
	for lines := bufio.NewScanner(strings.NewReader(string(log))); lines.Scan(); {
		var line struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"msg"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == message {
			times = append(times, line.Time)
		}
	}
	if len(times) == 0 {
		n.t.Fatalf("Joiner's log has no %q", message)
	}
	return times
}
