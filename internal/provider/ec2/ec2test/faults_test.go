package ec2test_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

func seconds(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }

// badDay has the faults of the runs below.
func badDay(seed uint64) ec2test.Faults {
	return ec2test.Faults{
		Seed:       seed,
		Visibility: ec2test.Visibility{Share: 0.6, Most: seconds(100)},
		Throttle: map[string]ec2test.Bucket{"ec2:CreateFleet": {Rate: 2, Burst: 10}, "ec2:DescribeInstances": {Rate: 1,
			Burst: 2}},
		LostBefore: []ec2test.Loss{{Action: "ec2:CreateFleet", Share: 0.1},
			{Action: "ec2:DescribeInstances", Share: 0.1,
				Status: 500}},
		LostAfter: []ec2test.Loss{{Action: "ec2:CreateFleet", Share: 0.2}},
	}
}

// persist repeats a call with the same token until it succeeds, as E-37 requires for the original answer.
func (a *account) persist(call func() error) error {
	for range 100 {
		err := call()
		var api smithy.APIError
		if err == nil {
			return nil
		}
		if errors.As(err, &api) && api.ErrorCode() != "RequestLimitExceeded" && api.ErrorCode() != "InternalError" {
			return err
		}
		a.Advance(500 * time.Millisecond)
	}
	return errors.New("a hundred tries were not enough")
}

func (a *account) launchOne(name string) error {
	in := a.fleet(1, spot, "c5.large", "m5.large")
	in.ClientToken = aws.String(name)
	in.TagSpecifications[0].Tags[0].Value = aws.String(name)
	return a.persist(func() error {
		out, err := a.client.CreateFleet(a.t.Context(), in)
		if err == nil && len(out.Instances) != 1 {
			return fmt.Errorf("%s: %s", name, taken(out))
		}
		return err
	})
}

// listed returns how many running instances each launch has, by listing them.
func (a *account) listed() map[string]int {
	a.t.Helper()
	got := map[string]int{}
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(50), Filters: []ec2types.Filter{
		{Name: aws.String("instance-state-name"), Values: []string{"pending", "running"}},
		{Name: aws.String("tag-key"), Values: []string{"joiner.sh/launch"}},
	}}
	for p := ec2.NewDescribeInstancesPaginator(a.client, in); p.HasMorePages(); {
		var out *ec2.DescribeInstancesOutput
		err := a.persist(func() (err error) { out, err = p.NextPage(a.t.Context()); return err })
		if err != nil {
			a.t.Fatal(err)
		}
		for _, r := range out.Reservations {
			for _, tag := range r.Instances[0].Tags {
				if *tag.Key == "joiner.sh/launch" {
					got[*tag.Value]++
				}
			}
		}
	}
	return got
}

// E-63: 200 launches through the SDK with answers lost before and after the effect, throttling and late listings: each
// has exactly one instance in the end, and no other exists.
func TestTwoHundredLaunchesOnABadDay(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 50
	a := newAccount(t, badDay(1))
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for n := range each {
				if err := a.launchOne(fmt.Sprintf("launch-%d-%d", w, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	early := len(a.listed())
	a.Advance(2 * time.Minute)
	got := a.listed()
	if len(got) != workers*each || early >= len(got) {
		t.Errorf("%d launches listed at once and %d later, want fewer than %d and exactly as many", early, len(got),
			workers*each)
	}
	for name, n := range got {
		if n != 1 {
			t.Errorf("%s has %d instances", name, n)
		}
	}
	lost, throttled := 0, 0
	for _, c := range a.Calls() {
		if c.Lost {
			lost++
		}
		if c.Code == "RequestLimitExceeded" {
			throttled++
		}
	}
	if lost < 20 || throttled < 20 {
		t.Errorf("%d answers were lost and %d calls throttled: was that a bad day?", lost, throttled)
	}
}

// E-63: the same seed makes the same day, another seed another day.
func TestADayIsAFunctionOfItsSeed(t *testing.T) {
	t.Parallel()
	day := func(seed uint64) string {
		a := newAccount(t, badDay(seed))
		for n := range 20 {
			if err := a.launchOne(fmt.Sprint("launch-", n)); err != nil {
				t.Error(err)
			}
		}
		var text strings.Builder
		for _, c := range a.Calls() {
			fmt.Fprintln(&text, c.Time, c.Action, c.Code, c.Lost)
		}
		return text.String() + fmt.Sprint(a.listed())
	}
	first := day(3)
	if again := day(3); again != first {
		t.Errorf("a day was\n%s\nand with the same seed\n%s", first, again)
	}
	if day(4) == first {
		t.Error("two seeds made the same day")
	}
}

// E-63: faults can come from a file, and an invalid file is refused with field, value and what is allowed.
func TestFaultsComeFromAFile(t *testing.T) {
	t.Parallel()
	got, err := ec2test.ReadFaults("testdata/faults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got.Visibility.Most.Duration != 2*time.Minute || len(got.Throttle) != 3 || got.LostAfter[0].Status != 503 ||
		got.Tokens != ec2test.TokenFleetOnly {
		t.Errorf("read %+v", got)
	}
	for text, want := range map[string]string{
		"speed: 1":                     `unknown field "speed"`,
		"visibility: {share: 2}":       "visibility.share is 2; 0 to 1 is allowed",
		"visibility: {least: 5s}":      "visibility.least is 5s; at most visibility.most",
		"tokens: maybe":                `tokens is "maybe"; one of`,
		"lostAfter: [{share: -1}]":     "lostAfter[0].share is -1",
		"pools: [{capacityType: all}]": `pools[0].capacityType is "all"`,
		"quotas: [{group: big}]":       `quotas[0].group is "big"; one of`,
		"throttle: {a: {rate: -1}}":    `throttle["a"]`,
		"garbled: [{how: odd}]":        `garbled[0].how is "odd"; one of ["cut" "empty" "html" "huge" "types"] is allowed`,
		"fleetErrors: [{share: 1}]":    "fleetErrors[0].code is empty",
		"omit: [all]":                  `omit[0] is "all"; one of`,
		"latency: soon":                "soon",
	} {
		name := filepath.Join(t.TempDir(), "faults.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ec2test.ReadFaults(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// E-45: instances end by themselves, with a reason in the listing, and spot instances are taken back.
func TestInstancesEndByThemselves(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{
		Ends: []ec2test.End{{Type: "m5.*", Share: 1, After: seconds(30), Code: "Client.InvalidKMSKey.InvalidState",
			Message: "no key"}},
		Interruptions: []ec2test.End{{Type: "c5.*", Share: 1, After: seconds(60)}},
	})
	a.launch(a.fleet(1, onDemand, "m5.large"))
	a.launch(a.fleet(1, onDemand, "c5.large"))
	a.launch(a.fleet(1, spot, "c5.large"))
	states := func() string {
		var all []string
		for _, i := range a.Instances() {
			all = append(all, i.State+" "+i.Code)
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{29 * time.Second, "running , running , running "},
		{time.Second, "shutting-down Client.InvalidKMSKey.InvalidState, running , running "},
		{149 * time.Second, "terminated Client.InvalidKMSKey.InvalidState, running , running "},
		{time.Second,
			"terminated Client.InvalidKMSKey.InvalidState, running , shutting-down Server.SpotInstanceTermination"},
	} {
		a.Advance(c.after)
		if got := states(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	status, err := a.client.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{})
	if err != nil || len(status.InstanceStatuses) != 1 {
		t.Errorf("%+v %v, want the one that runs", status, err)
	}
}

// E-53: impaired instances and announced events are found by filters.
func TestStatusChecks(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	ids := a.launch(a.fleet(3, onDemand, "c5.large")).Instances[0].InstanceIds
	slices.Sort(ids)
	a.Advance(5 * time.Minute)
	a.Impair(ids[1])
	a.Schedule(ids[2], ec2test.ScheduledEvent{Code: "instance-retirement", NotBefore: a.Now()})
	for name, want := range map[string]string{"instance-status.status=impaired": ids[1],
		"event.code=instance-retirement": ids[2]} {
		field, value, _ := strings.Cut(name, "=")
		filters := []ec2types.Filter{{Name: &field, Values: []string{value}}}
		out, err := a.client.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{Filters: filters})
		if err != nil || len(out.InstanceStatuses) != 1 || *out.InstanceStatuses[0].InstanceId != want {
			t.Errorf("%s: %+v %v, want %s", name, out, err, want)
		}
	}
}
