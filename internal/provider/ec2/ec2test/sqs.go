package ec2test

import (
	"crypto/md5" //nolint:gosec // the checksum that SQS has
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

func sqsActions(p protocol) map[string]action {
	return map[string]action{
		"GetQueueUrl":        typed(p, getQueueURL),
		"SendMessage":        typed(p, sendMessage),
		"ReceiveMessage":     typed(p, receiveMessage),
		"DeleteMessage":      typed(p, deleteMessage),
		"DeleteMessageBatch": typed(p, deleteMessageBatch),
		"CreateQueue":        typed(p, createQueue),
		"DeleteQueue":        typed(p, deleteQueue),
	}
}

// queue is an SQS queue. Every queue gets the events of instances, as by EventBridge.
type queue struct {
	name     string
	messages []*message
}

type message struct {
	id, body, receipt string
	sent, visible     time.Time
	received          int
}

// AddQueue adds a queue and returns its URL.
func (s *Server) AddQueue(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = &queue{name: name}
	return s.queueURL(name)
}

// Send puts a message into a queue.
func (s *Server) Send(name, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		s.put(q, body)
	}
}

// Messages returns how many messages a queue has, in flight or not.
func (s *Server) Messages(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		return len(q.messages)
	}
	return 0
}

func (s *Server) put(q *queue, body string) *message {
	m := &message{id: s.newID("msg"), body: body, sent: s.now(), visible: s.now()}
	q.messages = append(q.messages, m)
	s.tell()
	return m
}

// tell wakes all requests that wait for messages.
func (s *Server) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// event sends every queue EventBridge's event about an instance.
func (s *Server) event(kind, arn string, at time.Time, detail map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		text, err := json.Marshal(map[string]any{
			"version": "0", "id": s.newID("event"), "detail-type": kind, "source": "aws.ec2", "account": Account,
			"time":   stamp(at),
			"region": s.region, "resources": []string{arn}, "detail": detail,
		})
		if err != nil {
			panic(err) // texts only
		}
		s.put(s.queues[name], string(text))
	}
}

// warn sends the warning that a spot instance is taken back two minutes after at.
func (s *Server) warn(i *Instance, at time.Time) {
	arn := "arn:aws:ec2:" + i.Zone + ":instance/" + i.ID
	s.event("EC2 Spot Instance Interruption Warning", arn, at, map[string]string{"instance-id": i.ID,
		"instance-action": "terminate"})
}

// turn changes an instance's state and sends the event.
func (s *Server) turn(i *Instance, state string, at time.Time) {
	i.State = state
	s.event("EC2 Instance State-change Notification", s.arn("instance", i.ID), at,
		map[string]string{"instance-id": i.ID,
			"state": state})
}

func (s *Server) queueURL(name string) string { return s.url + "/" + Account + "/" + name }

func (s *Server) queueARN(name string) string {
	return "arn:aws:sqs:" + s.region + ":" + Account + ":" + name
}

// queue asks for the right to a queue, by its URL or name, and finds it.
func (c *call) queue(of string) (*queue, error) {
	name := of[strings.LastIndex(of, "/")+1:]
	action := strings.TrimSuffix(c.name(), "Batch") // the right for one message covers ten
	if err := c.authorize(Ask{Action: action, Resource: c.queueARN(name),
		Missing: c.queues[name] == nil}); err != nil {
		return nil, err
	}
	if q := c.queues[name]; q != nil {
		return q, nil
	}
	return nil, refuse(400, "com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist.")
}

func getQueueURL(c *call, in *struct {
	QueueName              string
	QueueOwnerAWSAccountId string
}) (any, error) {
	q, err := c.queue(in.QueueName)
	if err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": c.queueURL(q.name)}, nil
}

func sum(text string) string {
	digest := md5.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(digest[:])
}

func sendMessage(c *call, in *struct {
	QueueUrl, MessageBody string
}) (any, error) {
	q, err := c.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	m := c.put(q, in.MessageBody)
	return map[string]string{"MessageId": m.id, "MD5OfMessageBody": sum(m.body)}, nil
}

type receiveIn struct {
	QueueUrl                    string
	MaxNumberOfMessages         *int
	WaitTimeSeconds             int
	VisibilityTimeout           *int
	AttributeNames              []string
	MessageAttributeNames       []string
	MessageSystemAttributeNames []string
}

type messageJSON struct {
	MessageId, ReceiptHandle, Body, MD5OfBody string
	Attributes                                map[string]string `json:",omitempty"`
}

// defaultVisibility is SQS's own, in seconds.
const defaultVisibility = 30

// receiveMessage hides the returned messages for the visibility time, by the clock of the world. It waits by the clock
// of this machine.
func receiveMessage(c *call, in *receiveIn) (any, error) {
	q, err := c.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	most, hidden := 1, defaultVisibility
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		hidden = *in.VisibilityTimeout
	}
	if most < 1 || most > 10 || in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 {
		return nil, refuse(400, "InvalidParameterValue",
			"MaxNumberOfMessages is %d, 1 to 10 is allowed; WaitTimeSeconds is %d, 0 to 20 is allowed",
			most, in.WaitTimeSeconds)
	}
	var given []messageJSON
	for _, m := range q.messages {
		if len(given) == most {
			break
		}
		if m.visible.After(c.now()) {
			continue
		}
		m.received++
		m.receipt = fmt.Sprintf("%s-%d", m.id, m.received)
		m.visible = c.now().Add(time.Duration(hidden) * time.Second)
		shown := messageJSON{MessageId: m.id, ReceiptHandle: m.receipt, Body: m.body, MD5OfBody: sum(m.body)}
		if len(in.AttributeNames)+len(in.MessageSystemAttributeNames) > 0 {
			shown.Attributes = map[string]string{
				"SentTimestamp":           strconv.FormatInt(m.sent.UnixMilli(), 10),
				"ApproximateReceiveCount": strconv.Itoa(m.received),
			}
		}
		given = append(given, shown)
	}
	if len(given) == 0 {
		c.wait = time.Duration(in.WaitTimeSeconds) * time.Second
		return struct{}{}, nil
	}
	return map[string][]messageJSON{"Messages": given}, nil
}

// remove removes a message. The receipt of an earlier delivery has no effect: the message was delivered again since.
func (q *queue) remove(receipt string) {
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool {
		return m.receipt != "" && m.receipt == receipt
	})
}

func deleteMessage(c *call, in *struct {
	QueueUrl, ReceiptHandle string
}) (any, error) {
	q, err := c.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(in.ReceiptHandle, "msg-") {
		return nil, refuse(400, "ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	q.remove(in.ReceiptHandle)
	return nil, nil
}

func deleteMessageBatch(c *call, in *struct {
	QueueUrl string
	Entries  []struct{ Id, ReceiptHandle string }
}) (any, error) {
	q, err := c.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if len(in.Entries) == 0 || len(in.Entries) > 10 {
		return nil, refuse(400, "TooManyEntriesInBatchRequest", "%d entries are given; 1 to 10 are allowed",
			len(in.Entries))
	}
	type done struct{ Id string }
	type failed struct {
		Id, Code    string
		SenderFault bool
	}
	out := struct {
		Successful []done
		Failed     []failed
	}{[]done{}, []failed{}}
	for _, e := range in.Entries {
		if !strings.HasPrefix(e.ReceiptHandle, "msg-") {
			out.Failed = append(out.Failed, failed{e.Id, "ReceiptHandleIsInvalid", true})
			continue
		}
		q.remove(e.ReceiptHandle)
		out.Successful = append(out.Successful, done{e.Id})
	}
	return out, nil
}

func createQueue(c *call, in *struct{ QueueName string }) (any, error) {
	if err := c.authorize(Ask{Action: c.name(), Resource: c.queueARN(in.QueueName)}); err != nil {
		return nil, err
	}
	if c.queues[in.QueueName] == nil {
		c.queues[in.QueueName] = &queue{name: in.QueueName}
	}
	return map[string]string{"QueueUrl": c.queueURL(in.QueueName)}, nil
}

func deleteQueue(c *call, in *struct{ QueueUrl string }) (any, error) {
	q, err := c.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	delete(c.queues, q.name)
	return nil, nil
}
