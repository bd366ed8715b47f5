package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
)

const (
	// noticesEvery is how often the queue is read.
	noticesEvery = 5 * time.Second
	// AtOnce is how many messages SQS returns at a time; visibility is how long it then hides them, in seconds.
	AtOnce, visibility = 10, 20
	// mostReads bounds the reads of one call. The next call reads the rest.
	mostReads = 100
)

// told has the notices that were read and not acknowledged.
type told struct {
	mu       sync.Mutex
	list     map[string]message // by ID of the notice
	failed   error              // of the last deletion of messages
	failures int                // of deletions, since somebody asked
}

type message struct {
	notice  provider.Notice
	queue   string // its URL
	receipt string // of the message's last delivery; "" if it came from no queue
}

// Notices returns the notices that were read and not acknowledged. If the configuration has a queue, it reads that
// first. Otherwise whoever calls Receive reports what is new. Failed deletions are left to [Provider.Undeleted].
func (p *Provider) Notices(ctx context.Context) (provider.Notices, error) {
	if p.config.Queue == "" {
		return provider.Notices{List: p.told.all()}, nil
	}
	for range mostReads {
		received, _, err := p.Receive(ctx, p.config.Queue, 0)
		if err != nil {
			return provider.Notices{}, err
		}
		if received < AtOnce {
			break
		}
	}
	return provider.Notices{List: p.told.all(), Again: noticesEvery}, nil
}

// Receive reads up to [AtOnce] messages of a queue, by its URL, and waits up to wait for the first (E-51). news
// reports whether Notices has new ones. A message without a machine of ours is deleted at once. Before the first
// listing of this process nobody can tell: then the queue keeps messages about machines that no claim names, and shows
// them again soon. Whether a deletion succeeds is known later ([Provider.Undeleted]): a queue that keeps its messages
// can still be read.
func (p *Provider) Receive(ctx context.Context, queueURL string,
	wait time.Duration) (received int, news bool, err error) {
	out, err := p.config.Clients.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(queueURL), MaxNumberOfMessages: AtOnce, VisibilityTimeout: visibility,
		WaitTimeSeconds: int32(wait / time.Second),
	})
	if err != nil {
		return 0, false, fmt.Errorf("reading the interruption queue %s: %w", queueURL, machines.Told(err))
	}
	now, listed := p.config.Clock.Now(), p.listed()
	bound := sync.OnceValue(func() []*karpenterv1.NodeClaim {
		claims, _ := p.config.Cluster.Claims(ctx) // without them as if there were none
		return claims
	})
	for _, m := range out.Messages {
		stranger := false
		read := queue.Parse([]byte(aws.ToString(m.Body)), now, func(instanceID string) string {
			id := p.known(instanceID)
			if id == "" {
				id = boundTo(bound(), instanceID)
			}
			stranger = stranger || id == ""
			return id
		})
		if stranger && !listed {
			continue
		}
		p.config.Meter.Heard(read, now)
		if len(read.Notices) == 0 {
			p.deletions.Add(queueURL, aws.ToString(m.ReceiptHandle))
			continue
		}
		news = p.told.add(read.Notices, queueURL, aws.ToString(m.ReceiptHandle)) || news
	}
	return len(out.Messages), news, nil
}

// listed reports whether this process has listed its machines.
func (p *Provider) listed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastListing > 0
}

// boundTo returns the provider ID of an instance that one of the claims names, "" for others.
func boundTo(claims []*karpenterv1.NodeClaim, instanceID string) string {
	for _, claim := range claims {
		if strings.HasSuffix(claim.Status.ProviderID, "/"+instanceID) {
			return claim.Status.ProviderID
		}
	}
	return ""
}

// known returns the provider ID of an instance of this cluster, "" for others. It makes no call.
func (p *Provider) known(instanceID string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.lastSeen {
		if strings.HasSuffix(id, "/"+instanceID) {
			return id
		}
	}
	for id := range p.brought {
		if strings.HasSuffix(id, "/"+instanceID) {
			return id
		}
	}
	return ""
}

// Acknowledge deletes the message of a notice, once all notices of the message are handled. It does not wait for the
// call: a thousand warnings take a hundred calls, which must not delay the next claim (E-52). A message that could not
// be deleted comes again and is handled again, which does no harm.
func (p *Provider) Acknowledge(_ context.Context, notice provider.Notice) error {
	if m, last := p.told.last(notice.ID); last {
		p.deletions.Add(m.queue, m.receipt)
	}
	p.told.drop(notice.ID)
	if strings.HasPrefix(notice.ID, sourceReservations) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drained[notice.ID] = true
	}
	return nil
}

// deleteMessages deletes up to ten messages of a queue, by their receipts. Undeleted reports failures.
func (p *Provider) deleteMessages(ctx context.Context, queueURL string, receipts []string) []batch.Answer[struct{}] {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(queueURL)}
	for i, receipt := range receipts {
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)),
			ReceiptHandle: aws.String(receipt)})
	}
	out, err := p.config.Clients.SQS.DeleteMessageBatch(ctx, in)
	if err == nil && len(out.Failed) > 0 { // SQS's message may name the receipt, which is another one each time
		err = &smithy.GenericAPIError{Code: aws.ToString(out.Failed[0].Code),
			Message: "SQS took the call, but not all messages in it"}
	}
	p.told.deleted(err)
	return make([]batch.Answer[struct{}], len(receipts))
}

// Undeleted returns how many deletions of messages failed since its last call, and why the last one did: nil after a
// deletion that succeeded.
func (p *Provider) Undeleted() (failures int, last error) {
	p.told.mu.Lock()
	defer p.told.mu.Unlock()
	failures, p.told.failures = p.told.failures, 0
	return failures, p.told.failed
}

// deleted notes the result of a deletion.
func (t *told) deleted(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = err
	if err != nil {
		t.failures++
	}
}

// add stores the notices of a message, and reports whether one of them is new.
func (t *told) add(notices []provider.Notice, queueURL, receipt string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = map[string]message{}
	}
	for _, notice := range notices {
		if _, known := t.list[notice.ID]; !known {
			news = true
		}
		t.list[notice.ID] = message{notice, queueURL, receipt}
	}
	return news
}

func (t *told) all() []provider.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []provider.Notice
	for _, m := range t.list {
		list = append(list, m.notice)
	}
	slices.SortFunc(list, func(a, b provider.Notice) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// last returns the message of a notice, and whether no other notice of that message is pending; false for an unknown
// notice.
func (t *told) last(id string) (m message, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.list[id]
	for other, each := range t.list {
		if other != id && m.receipt != "" && each.receipt == m.receipt {
			return m, false
		}
	}
	return m, known && m.receipt != ""
}

func (t *told) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.list, id)
}

// Ours returns the provider ID of an instance of this cluster, "" for others. It makes no call.
func (p *Provider) Ours(instanceID string) string { return p.known(instanceID) }

// Prefixes of the IDs of notices that come from no queue.
const (
	sourceStatus       = "status/"
	sourceReservations = "reservation/"
)

// Sick replaces the notices of machines whose status checks fail, and reports whether one is new (E-53). list has all
// such machines, so one that has recovered loses its notice.
func (p *Provider) Sick(list []provider.Notice) (news bool) {
	return p.told.replace(sourceStatus, list)
}

// StatusNotice returns the notice of a machine whose status checks fail, or for which EC2 has scheduled an event that
// it does not survive.
func StatusNotice(instanceID, providerID string) provider.Notice {
	return provider.Notice{ID: sourceStatus + instanceID, Kind: provider.InstanceUnhealthy, ProviderID: providerID}
}

// replace replaces the notices of a source by a list, and reports whether one of them is new.
func (t *told) replace(source string, list []provider.Notice) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = map[string]message{}
	}
	maps.DeleteFunc(t.list, func(id string, _ message) bool {
		return strings.HasPrefix(id, source) &&
			!slices.ContainsFunc(list, func(n provider.Notice) bool { return n.ID == id })
	})
	for _, notice := range list {
		if _, known := t.list[notice.ID]; !known {
			t.list[notice.ID], news = message{notice: notice}, true
		}
	}
	return news
}
