package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
)

// apart puts each pod on a node of its own.
func apart(app string) string {
	return fmt.Sprintf("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}", app)
}

// said waits for an event with this reason and all parts in its text, and returns the text.
func (n *town) said(within time.Duration, reason string, parts ...string) string {
	n.t.Helper()
	text := ""
	n.eventually(within, fmt.Sprintf("event %s with %q", reason, parts),
		func(ctx context.Context) (bool, string, error) {
			var list eventsv1.EventList
			if err := n.Client.List(ctx, &list); err != nil {
				return false, "", err
			}
			var saw []string
			for _, e := range list.Items {
				if e.Reason != reason {
					continue
				}
				saw = append(saw, e.Note)
				if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(e.Note, part) }) {
					text = e.Note
					return true, "", nil
				}
			}
			return false, fmt.Sprintf("%q", saw), nil
		})
	return text
}

// ofInstance returns what the endpoint knows about an instance.
func (n *town) ofInstance(id string) ec2test.Instance {
	n.t.Helper()
	for _, i := range n.Account.Instances() {
		if i.ID == id {
			return i
		}
	}
	n.t.Fatalf("EC2 has forgotten %s", id)
	return ec2test.Instance{}
}

// E-51, E-52: a node of which EC2 warns is drained before its deadline and replaced, whoever sends the warning.
func TestASpotWarning(t *testing.T) {
	t.Parallel()
	n := newTown(t, nil)
	n.apply(class("default", ""),
		pool("default", "default", plain+amd64+"\n- {key: karpenter.sh/capacity-type, operator: In, values: [spot]}",
			quick),
		deployment("web", 3, "{cpu: 500m}", apart("web")))
	n.running(3, later)
	claims, err := n.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	warned := time.Now()
	first, second := claims[0], claims[1]
	n.Account.Interrupt(idOf(first.Status.ProviderID))
	n.warn(idOf(second.Status.ProviderID))
	n.eventually(soon, "the warned claims to go and others to take their place",
		func(ctx context.Context) (bool, string, error) {
			now, err := n.claims(ctx)
			left := 0
			for _, c := range now {
				if c.Name == first.Name || c.Name == second.Name {
					left++
				}
			}
			return left == 0 && len(now) == 3, fmt.Sprintf("%d of the warned claims are left, %d in all", left,
					len(now)),
				err
		})
	n.running(3, soon)
	n.said(soon, "SpotInterrupted")
	if took := time.Since(warned); took > 2*time.Minute {
		t.Errorf("it took %s: EC2 gives two minutes", took)
	}
	for _, c := range []karpenterv1.NodeClaim{first, second} {
		if i := n.ofInstance(idOf(c.Status.ProviderID)); i.Code != "Client.UserInitiatedShutdown" {
			t.Errorf("%s ended by %q: want it drained and terminated before EC2 takes it", i.ID, i.Code)
		}
	}
	n.eventually(soon, "the queue to be read", func(context.Context) (bool, string, error) {
		left := n.Account.Messages(n.Account.Queue)
		return left == 0, fmt.Sprintf("%d messages", left), nil
	})
}

// warn sends a warning as a user would: through the API of SQS.
func (n *town) warn(instance string) {
	n.t.Helper()
	queues := sqs.NewFromConfig(n.Account.Config(account.You))
	url, err := queues.GetQueueUrl(n.t.Context(), &sqs.GetQueueUrlInput{QueueName: &n.Account.Queue})
	if err != nil {
		n.t.Fatal(err)
	}
	_, err = queues.SendMessage(n.t.Context(),
		&sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String(account.Warning(instance, time.Now()))})
	if err != nil {
		n.t.Fatal(err)
	}
}

// E-13: nodes in a capacity block are drained when it has 40 minutes left, before EC2 ends their instances. Others
// outside of the block replace them.
func TestE13_ACapacityBlockThatEnds(t *testing.T) {
	t.Parallel()
	n := newTown(t, nil)
	n.Account.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-0123456789abcdef0", Kind: "capacity-block",
		Type: "m5.large", Zone: n.Account.Subnets[0].Zone, Total: 1,
		Ends: time.Now().Add(41*time.Minute + 30*time.Second)})
	n.apply(class("default", "capacityReservationSelectorTerms: [{id: cr-0123456789abcdef0}]"),
		pool("default", "default", "- {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}\n"+
			"- {key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand]}", quick),
		deployment("web", 1, "{cpu: 500m}", ""))
	n.running(1, later)
	claims, err := n.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := claims[0]
	if i := n.ofInstance(idOf(first.Status.ProviderID)); i.Reservation == "" {
		t.Fatalf("%s runs in no reservation", i.ID)
	}
	n.said(5*time.Minute, "CapacityBlockExpiring", "the capacity block that the machine runs in ends soon")
	n.eventually(later, "the claim in the block to go and another to take its place",
		func(ctx context.Context) (bool, string, error) {
			now, err := n.claims(ctx)
			return len(now) == 1 && now[0].Name != first.Name, fmt.Sprintf("%d claims", len(now)), err
		})
	n.running(1, later)
	if i := n.ofInstance(idOf(first.Status.ProviderID)); i.Code != "Client.UserInitiatedShutdown" {
		t.Errorf("%s ended by %q: want it drained and terminated before EC2 takes it", i.ID, i.Code)
	}
}

// E-10, E-49: a new image is reported, and nodes with the old one are replaced one by one, as the budget says.
func TestANewImage(t *testing.T) {
	t.Parallel()
	n := newTown(t, nil)
	n.apply(class("default", ""),
		pool("default", "default", plain+amd64+onDemand, "disruption:\n  consolidationPolicy: WhenEmpty\n"+
			"  consolidateAfter: 0s\n  budgets: [{nodes: \"1\"}]"), deployment("web", 3, "{cpu: 500m}", apart("web")))
	n.running(3, later)
	before := map[string]bool{}
	for _, i := range n.Account.Instances() {
		before[i.Image] = true
	}
	images := n.Account.Release(time.Now())
	// A parameter's value holds for a day (E-08): a new process asks anew.
	if err := n.KillJoiner(); err != nil {
		t.Fatal(err)
	}
	if err := n.StartJoiner(t.Context()); err != nil {
		t.Fatal(err)
	}
	standard := images[slices.IndexFunc(images, func(i ec2test.Image) bool {
		return strings.Contains(i.Name, "al2023-x86_64-standard")
	})]
	text := n.said(soon, "AMIChanged", standard.ID, standard.Name)
	for image := range before {
		if !strings.Contains(text, image) {
			t.Errorf("AMIChanged is %q, want it to name the old image %s", text, image)
		}
	}
	most := 0
	n.eventually(later, "all nodes to have the new image", func(ctx context.Context) (bool, string, error) {
		nodes, err := n.nodes(ctx)
		if err != nil {
			return false, "", err
		}
		leaving := 0
		for _, node := range nodes {
			if slices.ContainsFunc(node.Spec.Taints,
				func(t corev1.Taint) bool { return t.Key == karpenterv1.DisruptedTaintKey }) {
				leaving++
			}
		}
		most = max(most, leaving)
		instances, err := n.instances(ctx)
		old := 0
		for _, i := range instances {
			if aws.ToString(i.ImageId) != standard.ID {
				old++
			}
		}
		return old == 0 && len(nodes) == 3 && leaving == 0,
			fmt.Sprintf("%d of %d instances have the old image, %d leave", old, len(instances), leaving), err
	})
	if most > 1 {
		t.Errorf("%d nodes were leaving at once: the budget allows 1", most)
	}
	n.running(3, soon)
}
