package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
)

const (
	// noticesEvery is how often the queue is looked at.
	noticesEvery = 5 * time.Second
	// atOnce is how many messages SQS gives at a time, visibility how long it hides them then.
	atOnce, visibility = 10, 20
	// mostReads bounds one look: who has more messages looks again.
	mostReads = 100
)

// told are the notices that were read and not acknowledged.
type told struct {
	mu   sync.Mutex
	list map[string]message // by ID of the notice
}

type message struct {
	notice  provider.Notice
	receipt string // of the message's last delivery
}

// Notices reads what waits in the queue. A message that says nothing about a machine of ours is deleted at once.
func (p *Provider) Notices(ctx context.Context) (provider.Notices, error) {
	if p.config.Queue == "" {
		return provider.Notices{}, nil
	}
	for range mostReads {
		out, err := p.config.Clients.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(p.config.Queue), MaxNumberOfMessages: atOnce, VisibilityTimeout: visibility,
		})
		if err != nil {
			return provider.Notices{}, fmt.Errorf("reading the interruption queue %s: %w", p.config.Queue, machines.Told(err))
		}
		for _, m := range out.Messages {
			read := queue.Parse([]byte(aws.ToString(m.Body)), p.config.Clock.Now(), p.known)
			if len(read.Notices) == 0 {
				if err := p.deleteMessage(ctx, aws.ToString(m.ReceiptHandle)); err != nil {
					return provider.Notices{}, err
				}
			}
			p.told.add(read.Notices, aws.ToString(m.ReceiptHandle))
		}
		if len(out.Messages) < atOnce {
			break
		}
	}
	return provider.Notices{List: p.told.all(), Again: noticesEvery}, nil
}

// known returns the provider ID of an instance of this cluster, "" for others. It asks nobody.
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

// Acknowledge deletes the message of a notice.
func (p *Provider) Acknowledge(ctx context.Context, notice provider.Notice) error {
	receipt, known := p.told.receipt(notice.ID)
	if !known {
		return nil
	}
	if err := p.deleteMessage(ctx, receipt); err != nil {
		return err
	}
	p.told.drop(notice.ID)
	return nil
}

func (p *Provider) deleteMessage(ctx context.Context, receipt string) error {
	in := &sqs.DeleteMessageInput{QueueUrl: aws.String(p.config.Queue), ReceiptHandle: aws.String(receipt)}
	_, err := p.config.Clients.SQS.DeleteMessage(ctx, in)
	if err != nil {
		return fmt.Errorf("deleting a message of the interruption queue: %w", machines.Told(err))
	}
	return nil
}

func (t *told) add(notices []provider.Notice, receipt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = map[string]message{}
	}
	for _, notice := range notices {
		t.list[notice.ID] = message{notice, receipt}
	}
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

func (t *told) receipt(id string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.list[id]
	return m.receipt, known
}

func (t *told) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.list, id)
}
