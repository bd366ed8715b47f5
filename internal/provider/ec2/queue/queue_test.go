package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
)

const (
	one = "i-0123456789abcdef0"
	two = "i-0fedcba9876543210"
	arn = "arn:aws:ec2:eu-west-1:123456789012:instance/" + one
)

var sent = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// ours knows two instances.
func ours(id string) string {
	if id == one || id == two {
		return "aws:///eu-west-1a/" + id
	}
	return ""
}

// message is one as EventBridge sends it.
func message(source, detailType, detail string) string {
	const envelope = `{"version":"0","id":"e1","detail-type":%q,"source":%q,"account":"123456789012",` +
		`"time":"2026-08-01T12:00:00Z","region":"eu-west-1","resources":["` + arn + `"],"detail":%s}`
	return fmt.Sprintf(envelope, detailType, source, detail)
}

func ec2(detailType, detail string) string { return message("aws.ec2", detailType, detail) }

// said prints notices.
func said(m queue.Message) string {
	parts := []string{string(m.Kind)}
	for _, n := range m.Notices {
		text := string(n.Kind) + "=" + n.ID + "=" + n.ProviderID
		if !n.Gone.IsZero() {
			text += "=" + n.Gone.Sub(sent).String()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// E-51, E-52: the five kinds, what they say, and until when.
func TestMessagesBecomeNotices(t *testing.T) {
	t.Parallel()
	const (
		spot      = "EC2 Spot Instance Interruption Warning"
		state     = "EC2 Instance State-change Notification"
		mine      = "=e1/" + one + "=aws:///eu-west-1a/" + one
		instance  = `{"instance-id":"` + one + `"`
		reclaimed = instance + `,"instance-action":"terminate","instance-termination-time":"2026-08-01T12:01:30Z"}`
		scheduled = `{"service":"EC2","eventTypeCategory":"scheduledChange","statusCode":`
		entities  = `,"affectedEntities":[{"entityValue":"` + one + `","status":"PENDING"},` +
			`{"entityValue":"arn:aws:ec2:eu-west-1:123456789012:instance/` + two +
			`"},{"entityValue":"vol-1"},{"entityValue":"` + one + `"}]}`
	)
	health := func(detail string) string { return message("aws.health", "AWS Health Event", detail) }
	for name, c := range map[string]struct{ body, want string }{
		"spot": {
			ec2(spot, instance+`,"instance-action":"terminate"}`), "spot_interruption SpotInterrupted" + mine +
				"=2m0s",
		},
		"spot hibernate": {
			ec2(spot, instance+`,"instance-action":"hibernate"}`), "spot_interruption SpotInterrupted" + mine + "=0s",
		},
		"spot, no time": {
			strings.Replace(ec2(spot, instance+`}`), "2026-08-01T12:00:00Z", "yyyy", 1),
			"spot_interruption SpotInterrupted" + mine + "=2m30s",
		},
		"spot, from the future": {
			strings.Replace(ec2(spot, instance+`}`), "12:00:00Z", "13:00:00Z", 1),
			"spot_interruption SpotInterrupted" + mine + "=2m30s",
		},
		"not ours": {ec2(spot, `{"instance-id":"i-00000000000000000"}`), "spot_interruption"},
		"rebalance": {
			ec2("EC2 Instance Rebalance Recommendation", instance+`}`),
			"rebalance_recommendation SpotRebalanceRecommendation" + mine,
		},
		"stopping":      {ec2(state, instance+`,"state":"stopping"}`), "state_change InstanceStopping" + mine},
		"stopped":       {ec2(state, instance+`,"state":"stopped"}`), "state_change InstanceStopping" + mine},
		"shutting down": {ec2(state, instance+`,"state":"shutting-down"}`), "state_change InstanceTerminating" + mine},
		"terminated":    {ec2(state, instance+`,"state":"terminated"}`), "state_change InstanceTerminating" + mine},
		"running":       {ec2(state, instance+`,"state":"running"}`), "state_change"},
		"reservation": {
			ec2("EC2 Capacity Reservation Instance Interruption Warning", reclaimed),
			"capacity_reservation_interruption CapacityReservationInstanceInterrupted" + mine + "=1m30s",
		},
		"reservation, other name, resources as one text": {
			strings.NewReplacer(`["arn:aws:ec2:eu-west-1:123456789012:instance/`+one+`"]`, `"arn"`, `12:01:30Z`,
				"").Replace(
				ec2("EC2 Interruptible Capacity Reservation Instance Interruption Warning", reclaimed)),
			"capacity_reservation_interruption CapacityReservationInstanceInterrupted" + mine + "=2m0s",
		},
		"health": {health(scheduled + `"upcoming"` + entities),
			"scheduled_change InstanceUnhealthy" + mine + " InstanceUnhealthy" + strings.ReplaceAll(mine, one, two)},
		"health, called off": {health(scheduled + `"closed"` + entities), "scheduled_change"},
		"health, over for one": {
			health(scheduled + `"open","affectedEntities":[{"entityValue":"` + one + `","status":"RESOLVED"}]}`),
			"scheduled_change",
		},
		"health of something else": {
			health(strings.Replace(scheduled, "EC2", "RDS", 1) + `"open"` + entities), "scheduled_change",
		},
		"health, a notification": {
			health(strings.Replace(scheduled, "scheduledChange", "accountNotification", 1) + `"open"` + entities),
			"scheduled_change",
		},
	} {
		m := queue.Parse([]byte(c.body), sent.Add(30*time.Second), ours)
		if got := said(m); got != c.want || m.Explanation != "" {
			t.Errorf("%s:\n%s %s\nwant\n%s", name, got, m.Explanation, c.want)
		}
	}
}

// E-51: unknown and malformed messages are classified as such, with the reason, and have no other effect.
func TestWhatCannotBeReadIsExplained(t *testing.T) {
	t.Parallel()
	const spot = "EC2 Spot Instance Interruption Warning"
	for _, c := range []struct {
		body string
		kind queue.Kind
		text string
	}{
		{"", queue.Malformed, "no JSON"},
		{"[]", queue.Malformed, "no JSON"},
		{"null", queue.Unknown, `detail-type ""`},
		{"{}", queue.Unknown, `detail-type ""`},
		{ec2("EC2 Fleet Error", "{}"), queue.Unknown, "EC2 Fleet Error"},
		{ec2(strings.Repeat("x", 500), "{}"), queue.Unknown, "x…"},
		{message("me", spot, "{}"), queue.Unknown, `source "me"`},
		{ec2(spot, "{}"), queue.Malformed, "instance-id"},
		{ec2(spot, `{"instance-id":"web-1"}`), queue.Malformed, `"web-1"`},
		{ec2(spot, `{"instance-id":7}`), queue.Malformed, "detail"},
		{ec2(spot, `"text"`), queue.Malformed, "detail"},
		{ec2("EC2 Instance State-change Notification", `{"instance-id":"`+one+`"}`), queue.Malformed, "detail.state"},
		{message("aws.health", "AWS Health Event", `{"affectedEntities":{}}`), queue.Malformed, "scheduled_change"},
	} {
		m := queue.Parse([]byte(c.body), sent, ours)
		if m.Kind != c.kind || !strings.Contains(m.Explanation, c.text) || len(m.Notices) > 0 ||
			len(m.Explanation) > 300 {
			t.Errorf("%.80s: %+v, want %s and %q", c.body, m, c.kind, c.text)
		}
	}
}

// E-51, X-08: no message causes a panic; each has a kind that is counted; a message about none of our instances gives
// no notice.
func FuzzMessages(f *testing.F) {
	for _, detail := range []string{
		`{"instance-id":"` + one + `","state":"stopped"}`, `{"affectedEntities":[{"entityValue":"/"}]}`, `null`, `{`,
	} {
		f.Add(ec2("EC2 Instance State-change Notification", detail))
		f.Add(ec2("EC2 Spot Instance Interruption Warning", detail))
		f.Add(message("aws.health", "AWS Health Event", detail))
	}
	f.Fuzz(func(t *testing.T, body string) {
		m := queue.Parse([]byte(body), sent, ours)
		if !slices.Contains(queue.Kinds(), m.Kind) {
			t.Fatalf("kind %q", m.Kind)
		}
		unread := m.Kind == queue.Unknown || m.Kind == queue.Malformed
		if unread != (m.Explanation != "") || unread && len(m.Notices) > 0 {
			t.Fatalf("%+v", m)
		}
		for _, n := range m.Notices {
			if !strings.Contains(body, n.ProviderID[len("aws:///eu-west-1a/"):]) && !strings.Contains(body, `\u`) {
				t.Fatalf("%+v is about an instance that the message does not name", n)
			}
			if !slices.Contains(provider.NoticeKinds(), n.Kind) || n.Gone.After(sent.Add(2*time.Minute)) {
				t.Fatalf("%+v", n)
			}
		}
	})
}

// E-51: a queue by name, URL or ARN; else the error names the setting, the value and what is allowed.
func TestWhereAQueueIs(t *testing.T) {
	t.Parallel()
	const account = "123456789012"
	for text, want := range map[string]queue.Address{
		"my-cluster":      {Name: "my-cluster"},
		"my_cluster.fifo": {Name: "my_cluster.fifo"},
		"arn:aws:sqs:eu-west-1:123456789012:q": {
			Name: "q", Region: "eu-west-1", Account: account,
		},
		"arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q": {
			Name: "q", Region: "us-gov-west-1", Account: account,
		},
		"https://sqs.eu-west-1.amazonaws.com/123456789012/q": {
			Name: "q", Region: "eu-west-1", Account: account,
		},
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q": {
			Name: "q", Region: "cn-north-1", Account: account,
		},
		"https://us-east-1.queue.amazonaws.com/123456789012/q": {
			Name: "q", Region: "us-east-1", Account: account,
		},
		"https://vpce-1.sqs.us-east-2.vpce.amazonaws.com/123456789012/q": {
			Name: "q", Region: "us-east-2", Account: account,
		},
		"http://localhost:4566/123456789012/q": {Name: "q", Account: account},
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/queue/000000000000/q-1": {
			Name: "q-1", Region: "us-east-1", Account: "000000000000",
		},
	} {
		if strings.Contains(text, "://") {
			want.URL = text
		}
		if got, err := queue.ParseAddress(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"": "1 to 80", "my cluster": "1 to 80", ".fifo": "1 to 80",
		strings.Repeat("q", 81): "1 to 80", strings.Repeat("q", 80) + ".fifo": "1 to 80",
		"arn:aws:sns:eu-west-1:123456789012:q": "no ARN of an SQS queue",
		"arn:aws:sqs:eu-west-1:123456789012":   "no ARN",
		"arn:aws:sqs::123456789012:q":          "no region", "arn:aws:sqs:eu-west-1:me:q": "12 digits",
		"https://sqs.eu-west-1.amazonaws.com/q":            "an account and a name",
		"https://sqs.eu-west-1.amazonaws.com/me/q":         "12 digits",
		"ftp://sqs.eu-west-1.amazonaws.com/123456789012/q": "no URL",
		"https://u:p@host/123456789012/q":                  "path", "://": "no URL",
	} {
		_, err := queue.ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), "--interruption-queue is ") ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}
