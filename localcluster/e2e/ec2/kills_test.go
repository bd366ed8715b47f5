package ec2

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// number reads a number from the environment, for the long form of a test.
func number(t *testing.T, variable string, short int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number from 1", variable, text)
	}
	return n
}

// E-36, E-37, E-38: Joiner is killed between CreateFleet and its answer, or the answer is lost, JOINER_EC2_KILLS
// times. Every claim gets one instance, and none is left over.
func TestKilledBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	rounds := number(t, "JOINER_EC2_KILLS", 5)
	n := newTown(t, nil)
	n.apply(class("default", ""), pool("default", "default", plain+amd64+spotToo, quick),
		deployment("web", 1, "{cpu: 500m}", apart("web")))
	n.running(1, later)
	const most = 8 // nodes at once
	pods := 1
	for round := range rounds {
		if pods == most {
			n.kubectl("scale", "deployment", "web", "--replicas=1")
			n.oneForEach(1)
			pods = 1
		}
		pods++
		if round%3 == 2 {
			n.faults(ec2test.Faults{LostAfter: []ec2test.Loss{{Action: "ec2:CreateFleet", Share: 1, Times: 1}}})
			n.kubectl("scale", "deployment", "web", fmt.Sprintf("--replicas=%d", pods))
		} else {
			n.killInLaunch(pods)
		}
		n.running(pods, later)
		n.oneForEach(pods)
		n.faults(ec2test.Faults{})
	}
	n.kubectl("delete", "deployment", "web")
	n.nothingLeft(later)
	t.Logf("%d rounds, %d fleets were asked for", rounds, n.Account.Counts()["ec2:CreateFleet"])
}

// killInLaunch adds a pod, and kills Joiner once EC2 has done its CreateFleet but has not answered yet.
func (n *town) killInLaunch(pods int) {
	n.t.Helper()
	before := n.Account.Counts()["ec2:CreateFleet"]
	n.faults(ec2test.Faults{Latency: metav1.Duration{Duration: time.Second}})
	n.kubectl("scale", "deployment", "web", fmt.Sprintf("--replicas=%d", pods))
	deadline := time.NewTimer(soon)
	defer deadline.Stop()
	for tick := time.NewTicker(5 * time.Millisecond); n.Account.Counts()["ec2:CreateFleet"] == before; {
		select {
		case <-deadline.C:
			n.t.Fatalf("no CreateFleet within %s", soon)
		case <-tick.C:
		}
	}
	if err := n.KillJoiner(); err != nil {
		n.t.Fatal(err)
	}
	n.faults(ec2test.Faults{})
	if err := n.StartJoiner(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// oneForEach waits until there are as many claims, nodes and instances, and each claim has an instance of its own.
func (n *town) oneForEach(count int) {
	n.t.Helper()
	n.eventually(later, fmt.Sprintf("%d claims with an instance each", count),
		func(ctx context.Context) (bool, string, error) {
			claims, err := n.claims(ctx)
			if err != nil {
				return false, "", err
			}
			instances, err := n.instances(ctx)
			if err != nil {
				return false, "", err
			}
			of := map[string]string{}
			for _, c := range claims {
				id := idOf(c.Status.ProviderID)
				if _, is := instances[id]; !is {
					return false, fmt.Sprintf("claim %s has instance %q, which is none", c.Name, id), nil
				}
				if other := of[id]; other != "" {
					n.t.Fatalf("claims %s and %s have the same instance %s", other, c.Name, id)
				}
				of[id] = c.Name
			}
			saw := fmt.Sprintf("%d claims, %d instances", len(claims), len(instances))
			return len(claims) == count && len(instances) == count, saw, nil
		})
}
