package plug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

const (
	// longPoll is how long SQS waits for a message (E-51).
	longPoll = 20 * time.Second
	// mostPollers is how many read concurrently while answers are full (E-52).
	mostPollers = 8
	// queueAgain is when to try again after a failure.
	queueAgain = 10 * time.Second
)

// reader reads the interruption queue.
type reader struct {
	*link
	url  string
	bad  string               // the last failure that was logged
	told map[types.UID]string // on the lease, or on each class

	// undeleted and toldUndeleted are the same about messages that cannot be deleted.
	undeleted     string
	toldUndeleted map[types.UID]string
}

func newReader(l *link) *reader {
	return &reader{link: l, told: map[types.UID]string{}, toldUndeleted: map[types.UID]string{}}
}

// EventQueue is the reason of the event that the interruption queue cannot be read. It is on the leader's lease, since
// it concerns the whole program, or on each class if there is no lease (E-76).
const EventQueue = "InterruptionQueueUnavailable"

// EventUndeleted is the reason of the event that messages of the queue cannot be deleted. It is in the same place.
const EventUndeleted = "InterruptionMessagesNotDeleted"

// step waits for messages, and reads all of them. It is called again at once.
func (r *reader) step(ctx context.Context, c *connection) (time.Duration, error) {
	if r.settings.queue == "" {
		return 0, nil
	}
	if r.url == "" {
		url, err := r.queueURL(ctx, c)
		if err != nil {
			return r.failed(ctx, c, "sqs:GetQueueUrl", err)
		}
		r.url = url
	}
	received, news, err := c.machines.Receive(ctx, r.url, longPoll)
	if news {
		r.deps.Wake("")
	}
	for err == nil && received >= ec2.AtOnce {
		received, err = r.together(ctx, c)
	}
	if err != nil {
		return r.failed(ctx, c, "sqs:ReceiveMessage", err)
	}
	r.bad = ""
	clear(r.told)
	r.meter.queue.Set(0)
	r.deletions(ctx, c)
	return time.Millisecond, nil
}

// deletions reports that messages cannot be deleted, once while it is the same. The queue is read all the same: spot
// warnings are heard.
func (r *reader) deletions(ctx context.Context, c *connection) {
	failures, err := c.machines.Undeleted()
	if ctx.Err() != nil {
		return
	}
	r.meter.failures.WithLabelValues("messages").Add(float64(failures))
	if err == nil {
		r.undeleted = ""
		clear(r.toldUndeleted)
		return
	}
	refused, remedy := refusal.Of(err), ""
	if refused.Class == refusal.Rights {
		remedy = "allow the controller's role this action; "
	}
	text := fmt.Sprintf("messages of queue %q in %s cannot be deleted by sqs:DeleteMessage: %s %s; %suntil then they "+
		"come again and are handled again, which does no harm", r.settings.queue, c.region, refused.Code,
		strings.TrimRight(refused.Message, "."), remedy)
	if text != r.undeleted {
		r.undeleted = text
		r.deps.Log.Info("messages of the interruption queue cannot be deleted; warnings are heard all the same",
			"reason", text)
	}
	r.tellProgram(ctx, r.toldUndeleted, EventUndeleted, text)
}

// together reads with all pollers once, and returns the highest number of messages of a poller.
func (r *reader) together(ctx context.Context, c *connection) (most int, err error) {
	var group sync.WaitGroup
	received, failures, news := [mostPollers]int{}, [mostPollers]error{}, [mostPollers]bool{}
	for i := range mostPollers {
		group.Go(func() { received[i], news[i], failures[i] = c.machines.Receive(ctx, r.url, 0) })
	}
	group.Wait()
	if slices.Contains(news[:], true) {
		r.deps.Wake("")
	}
	return slices.Max(received[:]), errors.Join(failures[:]...)
}

// failed reports a failure, once while it is the same. Everything else goes on (E-76).
func (r *reader) failed(ctx context.Context, c *connection, action string, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, nil
	}
	r.url = ""
	r.meter.failures.WithLabelValues("queue").Inc()
	refused := refusal.Of(err)
	r.meter.queue.Set(1)
	text := fmt.Sprintf("queue %q in %s cannot be read by %s: %s %s; correct --interruption-queue, or the "+
		"controller's role; until then spot warnings are not heard", r.settings.queue, c.region, action,
		refused.Code, strings.TrimRight(refused.Message, "."))
	if text != r.bad {
		r.bad = text
		r.deps.Log.Error(nil, EventQueue+": "+text)
	}
	r.tellProgram(ctx, r.told, EventQueue, text)
	return queueAgain, nil
}

const (
	// healthEvery is the interval of reading status checks, impairedFor how long one must fail to count (E-53).
	healthEvery = time.Minute
	// eventsEvery is the interval of reading scheduled events, which AWS announces days ahead.
	eventsEvery = 5 * time.Minute
	impairedFor = 2 * time.Minute
	statusPage  = 1000
	statusPages = 100
)

// health reads the status checks of instances, and their scheduled events.
type health struct {
	*link
	denied    bool
	began     bool
	scheduled []ailment // from the last read
	asked     time.Time
	known     map[ailment]bool // those of the last read: a lasting one is counted once (E-62)
}

// ailment is a fault of one of our machines.
type ailment struct{ instanceID, providerID, category string }

// The categories, as in Karpenter.
const (
	categoryInstance = "InstanceStatus"
	categorySystem   = "SystemStatus"
	categoryEvent    = "EventStatus"
)

func newHealth(l *link) *health { return &health{link: l} }

// step asks for instances whose checks fail, and those with a scheduled event. It begins a minute after the start,
// which needs enough other calls (E-61). A check counts only after impairedFor anyway.
func (h *health) step(ctx context.Context, c *connection) (time.Duration, error) {
	if !h.began {
		h.began = true
		return healthEvery, nil
	}
	var sick []ailment
	for _, name := range []string{"instance-status.status", "system-status.status"} {
		found, err := h.ask(ctx, c, filterOf(name, "impaired"))
		if err != nil {
			h.failed(err)
			return healthEvery, nil
		}
		sick = append(sick, found...)
	}
	if now := h.deps.Now(); now.Sub(h.asked) >= eventsEvery {
		found, err := h.ask(ctx, c,
			filterOf("event.code", "instance-reboot", "system-reboot", "system-maintenance", "instance-retirement",
				"instance-stop"))
		if err != nil {
			h.failed(err)
			return healthEvery, nil
		}
		h.scheduled, h.asked = found, now
	}
	sick = append(sick, h.scheduled...)
	h.denied = false
	h.count(sick)
	var notices []provider.Notice
	for _, each := range sick {
		notices = append(notices, ec2.StatusNotice(each.instanceID, each.providerID))
	}
	if c.machines.Sick(notices) {
		h.deps.Wake("")
	}
	return healthEvery, nil
}

// count counts the ailments that the last read did not have.
func (h *health) count(sick []ailment) {
	now := map[ailment]bool{}
	for _, each := range sick {
		if !h.known[each] && !now[each] {
			h.meter.sick.WithLabelValues(each.category).Inc()
		}
		now[each] = true
	}
	h.known = now
}

func (h *health) failed(err error) {
	h.meter.failures.WithLabelValues("health").Inc()
	rights := refusal.Of(err).Class == refusal.Rights
	if rights && h.denied {
		return
	}
	h.denied = rights
	h.deps.Log.Info("status checks of instances are not known; the rest goes on", "reason", refusal.Of(err).Message)
}

func filterOf(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: aws.String(name), Values: values}
}

// ask returns the ailments of our instances among those that EC2 lists, if they have lasted long enough.
func (h *health) ask(ctx context.Context, c *connection, filters ...ec2types.Filter) ([]ailment, error) {
	in := &awsec2.DescribeInstanceStatusInput{Filters: filters, MaxResults: aws.Int32(statusPage)}
	var list []ailment
	for range statusPages {
		out, err := c.clients.EC2.DescribeInstanceStatus(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range out.InstanceStatuses {
			each := &out.InstanceStatuses[i]
			instanceID := aws.ToString(each.InstanceId)
			id := c.machines.Ours(instanceID)
			if id == "" {
				continue
			}
			for _, category := range h.broken(each) {
				list = append(list, ailment{instanceID, id, category})
			}
		}
		if aws.ToString(out.NextToken) == "" {
			break
		}
		in.NextToken = out.NextToken
	}
	return list, nil
}

// broken returns the categories of the checks that have failed for long, and of scheduled events that the machine does
// not survive unchanged.
func (h *health) broken(s *ec2types.InstanceStatus) []string {
	var of []string
	if h.impaired(s.InstanceStatus) {
		of = append(of, categoryInstance)
	}
	if h.impaired(s.SystemStatus) {
		of = append(of, categorySystem)
	}
	if slices.ContainsFunc(s.Events, func(e ec2types.InstanceStatusEvent) bool {
		text := aws.ToString(e.Description) // EC2 leaves events in the list for a while, marked at the beginning
		return !strings.HasPrefix(text, "[Completed]") && !strings.HasPrefix(text, "[Canceled]")
	}) {
		of = append(of, categoryEvent)
	}
	return of
}

func (h *health) impaired(s *ec2types.InstanceStatusSummary) bool {
	return s != nil && s.Status == ec2types.SummaryStatusImpaired &&
		slices.ContainsFunc(s.Details, func(d ec2types.InstanceStatusDetails) bool {
			return d.Status == ec2types.StatusTypeFailed && d.ImpairedSince != nil &&
				h.deps.Now().Sub(*d.ImpairedSince) >= impairedFor
		})
}
