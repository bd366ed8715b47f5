package resolve_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

const ready = karpenterv1.ConditionTypeReady

// E-03: a failed call keeps the resolved values and every condition for 24 h; the message says since when they are
// old.
func TestTroubleLeavesAClassAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	was := resolved(class)
	w.faults(throttled("*"))
	w.Advance(14 * time.Minute)
	w.resolve()
	for _, kind := range []string{resolve.SubnetsReady, resolve.SecurityGroupsReady, resolve.AMIsReady} {
		w.expect(class, kind, "True", kind, "last seen 14 min ago, at 2026-11-02T09:01:00Z: ec2:Describe",
			": RequestLimitExceeded")
	}
	w.expect(class, ready, "True", "Ready")
	if got := resolved(class); got != was {
		t.Errorf("resolved to %s, was %s", got, was)
	}
	if since := w.results["a"].StaleSince; since.Format("15:04") != "09:01" || w.results["a"].After != 30*time.Second {
		t.Errorf("stale since %s, again after %s", since, w.results["a"].After)
	}
	w.Advance(24*time.Hour - 14*time.Minute)
	w.resolve()
	w.expect(class, ready, "True", "Ready")
	w.Advance(2 * time.Minute)
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "Unknown", resolve.Stale, "last seen 24 h ago")
	w.expect(class, ready, "Unknown", resolve.Stale)
	if got := resolved(class); got != was {
		t.Errorf("resolved to %s after a day, was %s", got, was)
	}
	w.faults(ec2test.Faults{})
	w.Advance(time.Minute)
	w.resolve()
	w.expect(class, ready, "True", "Ready")
	if since := w.results["a"].StaleSince; !since.IsZero() {
		t.Errorf("stale since %s when all is well", since)
	}
}

// E-03: an empty answer is no failure.
func TestAnAnswerThatSaysNoneCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	edit(class, func(s *awsv1.EC2NodeClassSpec) { s.SubnetSelectorTerms[0].Tags = map[string]string{"x": "y"} })
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "False", resolve.SubnetsNotFound)
	if len(class.Status.Subnets) > 0 {
		t.Error("subnets that the class does not choose stay in its status")
	}
	w.faults(throttled("*"))
	w.Advance(time.Hour)
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "False", resolve.SubnetsNotFound, "tags x=y", "; last seen 60 min ago")
}

// E-03: a process that starts during failures keeps the status of the unchanged class, and no more.
func TestANewProcessKeepsWhatTheStatusSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	was := resolved(class)
	w.faults(throttled("*"))
	w.restart()
	w.Advance(3 * time.Minute)
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "True", resolve.SubnetsReady,
		"last seen at least 3 min ago, before 2026-11-02T09:01:00Z: ")
	w.expect(class, ready, "True", "Ready")
	w.restart()
	w.Advance(7 * time.Minute)
	w.resolve()
	w.expect(class, resolve.AMIsReady, "True", resolve.AMIsReady,
		"last seen at least 10 min ago, before 2026-11-02T09:01:00Z: ")
	if got := resolved(class); got != was {
		t.Errorf("resolved to %s, was %s", got, was)
	}
	edit(class, func(s *awsv1.EC2NodeClassSpec) { s.SubnetSelectorTerms[0].Tags = map[string]string{"x": "y"} })
	w.Advance(time.Minute)
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "Unknown", resolve.NotResolved, "ec2:DescribeSubnets: RequestLimitExceeded")
	w.expect(class, resolve.InstanceProfileReady, "True", resolve.InstanceProfileReady) // the role is the same
	w.expect(class, ready, "Unknown", resolve.NotResolved)
	if got := resolved(class); got != was {
		t.Errorf("resolved to %s, was %s", got, was)
	}
	fresh := w.class("b", nil)
	w.resolve()
	w.expect(fresh, resolve.AMIsReady, "Unknown", resolve.NotResolved, "ssm:GetParameter: ThrottlingException")
	w.expect(fresh, resolve.InstanceProfileReady, "Unknown", resolve.NotResolved, "iam:GetInstanceProfile: Throttling")
}

// E-03: the 24 h continue across restarts.
func TestADayEndsAcrossProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	w.faults(throttled("*"))
	for range 25 {
		w.expect(class, ready, "True", "Ready")
		w.restart()
		w.Advance(time.Hour)
		w.resolve()
	}
	w.expect(class, ready, "Unknown", resolve.Stale)
}

// E-03, E-71: a missing right to look something up is named, and does not count as an empty answer.
func TestRightsThatAreMissingAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	w.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:DescribeSubnets"}, {Action: "ssm:*"}}})
	w.Advance(2 * time.Minute)
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "True", resolve.SubnetsReady, "UnauthorizedOperation",
		"not authorized to perform")
	fresh := w.class("b", func(s *awsv1.EC2NodeClassSpec) {
		s.SubnetSelectorTerms[0].Tags = map[string]string{
			"x": "y",
		}
	})
	w.resolve()
	w.expect(fresh, resolve.SubnetsReady, "Unknown", resolve.Unauthorized, "ec2:DescribeSubnets",
		"not authorized to perform")
	w.expect(fresh, resolve.AMIsReady, "True", resolve.AMIsReady)
}

// E-03, E-78: unreadable answers set no condition of a new class to False, have no effect, and are reported with their
// action.
func TestGarbageIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a"})
	w.AddPlacementGroup(ec2test.PlacementGroup{Name: "near", Strategy: "cluster"})
	for _, how := range []string{"cut", "empty", "html"} {
		w.faults(ec2test.Faults{Garbled: []ec2test.Garble{{Action: "*", Share: 1, How: how}}})
		w.restart()
		w.Forget()
		class := w.class(how, func(s *awsv1.EC2NodeClassSpec) {
			s.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
			s.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "near"}
		})
		w.resolve()
		for kind, action := range map[string]string{
			resolve.SubnetsReady: "ec2:DescribeSubnets", resolve.SecurityGroupsReady: "ec2:DescribeSecurityGroups",
			resolve.AMIsReady: "ssm:GetParameter", resolve.InstanceProfileReady: "iam:GetInstanceProfile",
			resolve.CapacityReservationsReady: "ec2:DescribeCapacityReservations",
			resolve.PlacementGroupReady:       "ec2:DescribePlacementGroups",
		} {
			w.expect(class, kind, "Unknown", resolve.NotResolved, action)
		}
		if n := w.Counts()["iam:CreateInstanceProfile"]; n > 0 {
			t.Errorf("%s: a profile was made on no answer", how)
		}
		w.classes = nil
	}
}

func last(class *awsv1.EC2NodeClass) karpenterv1.Condition {
	return class.Status.Conditions[len(class.Status.Conditions)-1]
}

// E-03, as a law: during any failures of less than a day, and any restarts, a class in an unchanged world stays ready,
// with everything that it had.
func TestNoTroubleMakesAClassUnready(t *testing.T) {
	t.Parallel()
	actions := []string{"ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "ec2:DescribeImages", "ssm:GetParameter",
		"iam:GetInstanceProfile", "ec2:DescribeCapacityReservations", "*"}
	w := newWorld(t)
	w.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Total: 2})
	rapid.Check(t, func(rt *rapid.T) {
		w.classes = nil
		w.faults(ec2test.Faults{})
		w.restart()
		class := w.class("a", func(s *awsv1.EC2NodeClassSpec) {
			s.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
		})
		w.ready()
		was, had := resolved(class), kinds(class)
		bad := time.Duration(0)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			action := rapid.SampledFrom(actions).Draw(rt, "action")
			switch rapid.IntRange(0, 5).Draw(rt, "trouble") {
			case 0:
				w.faults(ec2test.Faults{})
			case 1:
				w.faults(throttled(action))
			case 2:
				w.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: action}}})
			case 3:
				w.faults(ec2test.Faults{LostAfter: []ec2test.Loss{{Action: action, Share: 1}}})
			case 4:
				w.faults(ec2test.Faults{Garbled: []ec2test.Garble{{Action: action, Share: 1,
					How: rapid.SampledFrom([]string{"cut", "empty", "html"}).Draw(rt, "kind")}}})
			case 5:
				w.restart()
			}
			d := time.Duration(rapid.IntRange(0, 110).Draw(rt, "minutes")) * time.Minute
			if bad += d; bad >= 23*time.Hour {
				break
			}
			w.Advance(d)
			w.resolve()
			if c := last(class); c.Type != ready || c.Status != "True" {
				rt.Fatalf("%s is %s: %s", c.Type, c.Status, c.Message)
			}
			if got := resolved(class); got != was {
				rt.Fatalf("resolved to %s, was %s", got, was)
			}
			if got := kinds(class); got != had || strings.Contains(got, "Ready Ready") {
				rt.Fatalf("conditions %s, had %s", got, had)
			}
		}
	})
}
