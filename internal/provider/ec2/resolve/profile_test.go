package resolve_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// E-40: a profile is made for a role, with a name that is a function of its purpose, and is Propagating until it was
// accepted or a minute has passed.
func TestAProfileIsMadeForARole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", func(s *awsv1.EC2NodeClassSpec) { s.Tags = map[string]string{"team": "x"} })
	w.resolve()
	name := resolve.ProfileName("c1", "us-east-1", "uid-a", "nodes")
	if got := w.InstanceProfiles()[name]; got != "nodes" || class.Status.InstanceProfile != name {
		t.Errorf("profiles %v, status %s, want %s", w.InstanceProfiles(), class.Status.InstanceProfile, name)
	}
	w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.Propagating, name)
	w.expect(class, karpenterv1.ConditionTypeValidationSucceeded, "True", karpenterv1.ConditionTypeValidationSucceeded)
	w.expect(class, ready, "Unknown", resolve.Propagating)
	if w.results["a"].After > 5*time.Second {
		t.Errorf("again after %s", w.results["a"].After)
	}
	var made []ec2test.Ask
	for _, c := range w.Calls() {
		if c.Action == "CreateInstanceProfile" {
			made = c.Asks
		}
	}
	if len(made) == 0 || !strings.Contains(made[0].Resource, ":instance-profile/karpenter/us-east-1/c1/uid-a/"+name) {
		t.Fatalf("made with %+v", made)
	}
	for key, want := range map[string]string{
		"kubernetes.io/cluster/c1": "owned", "eks:eks-cluster-name": "c1",
		"topology.kubernetes.io/region": "us-east-1", "karpenter.k8s.aws/ec2nodeclass": "a", "team": "x",
	} {
		if got := made[0].RequestTags[key]; got != want {
			t.Errorf("tag %s is %q, want %q", key, got, want)
		}
	}
	w.Advance(59 * time.Second)
	w.resolve()
	w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.Propagating)
	w.restart()
	w.resolve()
	w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.Propagating)
	w.Advance(time.Second)
	w.resolve()
	w.expect(class, resolve.InstanceProfileReady, "True", resolve.InstanceProfileReady)
	other := w.class("b", nil)
	w.resolve()
	w.resolver.ProfileAccepted(other.Status.InstanceProfile)
	w.resolve()
	w.expect(other, resolve.InstanceProfileReady, "True", resolve.InstanceProfileReady)
}

// E-40: names differ by each of their inputs, and are valid in IAM.
func TestNamesOfProfiles(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, n := range [][4]string{
		{"c", "r", "u", "x"}, {"d", "r", "u", "x"}, {"c", "s", "u", "x"}, {"c", "r", "v", "x"}, {"c", "r", "u", "y"},
		{"c r", "", "u", "x"}, {"c", "r u", "", "x"},
		{strings.Repeat("c", 300), "ap-southeast-1", "u", strings.Repeat("x", 64)},
	} {
		name := resolve.ProfileName(n[0], n[1], n[2], n[3])
		if seen[name] || len(name) > 128 {
			t.Errorf("%q: %s (taken: %t)", n, name, seen[name])
		}
		seen[name] = true
	}
}

// E-40: a crash or a lost answer at any step causes no second profile, and leaves none unfinished.
func TestAProfileThatWasHalfMade(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"iam:CreateInstanceProfile", "iam:AddRoleToInstanceProfile"} {
		for _, faults := range []ec2test.Faults{
			{LostAfter: []ec2test.Loss{{Action: action, Share: 1, Times: 1}}},
			{LostBefore: []ec2test.Loss{{Action: action, Share: 1, Times: 1, Status: 500}}},
			{Garbled: []ec2test.Garble{{Action: action, Share: 1, Times: 1, How: "html"}}},
		} {
			w := newWorld(t)
			class := w.class("a", nil)
			w.faults(faults)
			w.resolve()
			w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.NotResolved, action)
			w.restart()
			w.Advance(time.Minute)
			w.resolve()
			if n := len(w.InstanceProfiles()); n != 1 ||
				w.InstanceProfiles()[class.Status.InstanceProfile] != "nodes" {
				t.Errorf("%s, %+v: profiles %v, status %q", action, faults, w.InstanceProfiles(),
					class.Status.InstanceProfile)
			}
			w.Advance(time.Minute)
			w.resolve()
			w.expect(class, ready, "True", "Ready")
		}
	}
}

// late is an IAM that does not show profiles yet.
type late struct{ *iam.Client }

func (late) GetInstanceProfile(context.Context, *iam.GetInstanceProfileInput, ...func(*iam.Options)) (
	*iam.GetInstanceProfileOutput, error,
) {
	return nil, &smithy.GenericAPIError{Code: "NoSuchEntity", Message: "cannot be found"}
}

// E-40: a profile that IAM does not show yet is found by trying to make it, with its role or without.
func TestAProfileThatIsNotShownYet(t *testing.T) {
	t.Parallel()
	for _, faults := range []ec2test.Faults{{}, throttled("iam:AddRoleToInstanceProfile")} {
		w := newWorld(t)
		class := w.class("a", nil)
		w.faults(faults)
		w.resolve()
		w.faults(ec2test.Faults{})
		w.restartWith(late{iam.NewFromConfig(w.once())})
		w.Advance(time.Minute)
		w.resolve()
		w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.Propagating)
		if got := w.InstanceProfiles()[class.Status.InstanceProfile]; got != "nodes" ||
			len(w.InstanceProfiles()) != 1 {
			t.Errorf("profiles %v, status %s", w.InstanceProfiles(), class.Status.InstanceProfile)
		}
	}
}

// E-71: a role that does not exist, or may not be passed.
func TestRolesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", func(s *awsv1.EC2NodeClassSpec) { s.Role = new("no-such-role") })
	w.resolve()
	w.expect(class, resolve.InstanceProfileReady, "False", resolve.RoleNotFound, `spec.role is "no-such-role"`)
	w.expect(class, ready, "False", resolve.RoleNotFound)
	if class.Status.InstanceProfile != "" {
		t.Errorf("the status has the profile %s", class.Status.InstanceProfile)
	}
	w.AddRole("no-such-role")
	w.Advance(time.Minute)
	w.resolve()
	w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.Propagating)
	w.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "iam:PassRole"}}})
	denied := w.class("b", nil)
	w.resolve()
	w.expect(denied, resolve.InstanceProfileReady, "False", resolve.Unauthorized, `spec.role "nodes"`,
		"perform: iam:PassRole", "role/nodes")
	w.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "iam:CreateInstanceProfile"}}})
	denied = w.class("c", nil)
	w.resolve()
	w.expect(denied, resolve.InstanceProfileReady, "False", resolve.Unauthorized, "iam:CreateInstanceProfile")
}

// E-40: another role is another profile; a role that somebody put into ours is taken out.
func TestAnotherRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	w.AddRole("others")
	edit(class, func(s *awsv1.EC2NodeClassSpec) { s.Role = new("others") })
	w.resolve()
	if got := w.InstanceProfiles()[class.Status.InstanceProfile]; got != "others" {
		t.Errorf("the profile has the role %q", got)
	}
	w.AddInstanceProfile(class.Status.InstanceProfile, "intruder")
	w.Advance(30 * time.Minute)
	w.resolve()
	if got := w.InstanceProfiles()[class.Status.InstanceProfile]; got != "others" {
		t.Errorf("the profile has the role %q after half an hour", got)
	}
}

// E-72: a profile that the user names is looked up, and a missing right to look it up is no obstacle.
func TestAProfileThatTheUserNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", func(s *awsv1.EC2NodeClassSpec) { s.Role, s.InstanceProfile = nil, new("mine") })
	w.resolve()
	const kind = karpenterv1.ConditionTypeValidationSucceeded
	w.expect(class, kind, "False", resolve.InstanceProfileNotFound, `spec.instanceProfile is "mine"`)
	w.faults(throttled("iam:*"))
	w.restart()
	w.Advance(time.Minute)
	w.resolve()
	w.expect(class, kind, "False", resolve.InstanceProfileNotFound, `spec.instanceProfile is "mine"`)
	w.faults(ec2test.Faults{})
	w.AddInstanceProfile("mine", "nodes")
	w.Advance(time.Minute)
	w.resolve()
	w.expect(class, ready, "True", "Ready")
	if class.Status.InstanceProfile != "mine" || len(w.InstanceProfiles()) != 1 {
		t.Errorf("status %s, profiles %v", class.Status.InstanceProfile, w.InstanceProfiles())
	}
	w.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "iam:*"}}})
	fresh := w.class("b", func(s *awsv1.EC2NodeClassSpec) { s.Role, s.InstanceProfile = nil, new("unseen") })
	w.resolve()
	w.expect(fresh, resolve.InstanceProfileReady, "True", resolve.InstanceProfileReady, "unseen",
		"iam:GetInstanceProfile")
	w.expect(fresh, ready, "True", "Ready")
}

// E-04, E-40: nothing is made for a class that is being deleted.
func TestAClassThatGoesGetsNoProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	class.DeletionTimestamp = &metav1.Time{Time: w.Now()}
	w.resolve()
	if n := len(w.InstanceProfiles()); n > 0 {
		t.Errorf("%d profiles", n)
	}
	w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.NotResolved, "being deleted")
}
