package resolve_test

import (
	"testing"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// theirs are the name and the path of an instance profile that Karpenter made.
const (
	theirs     = "c1_15263850463527461230"
	theirPath  = "/karpenter/us-east-1/c1/uid-a/"
	legacyPath = "/"
)

// karpenterMade adds a profile like one of Karpenter's AWS provider: below a path of the class, in earlier releases
// without a path (pkg/providers/instanceprofile of releases 1.0.8, 1.9.3 and 1.15.1).
func (w *world) karpenterMade(path, role string, tags map[string]string) {
	w.AddInstanceProfileAt(path, theirs, role, tags)
}

func theirTags(class string) map[string]string {
	return map[string]string{
		"kubernetes.io/cluster/c1": "owned", "eks:eks-cluster-name": "c1", "karpenter.k8s.aws/ec2nodeclass": class,
		"topology.kubernetes.io/region": "us-east-1",
	}
}

// E-40, P-34: the profile that Karpenter made for a class stays the class's: it is ready at once, and nothing is made
// or changed. One of another role, class or user is left alone, and ours is made.
func TestAnInheritedProfile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, role string
		tags       map[string]string
		stays      bool
	}{
		"below the class's path":      {theirPath, "nodes", theirTags("a"), true},
		"before there were paths":     {legacyPath, "nodes", theirTags("a"), true},
		"below the path without tags": {theirPath, "nodes", nil, true},
		"of another role":             {theirPath, "other", theirTags("a"), false},
		"of another class":            {legacyPath, "nodes", theirTags("b"), false},
		"of a user":                   {legacyPath, "nodes", nil, false},
	} {
		w := newWorld(t)
		w.AddRole("other")
		w.karpenterMade(c.path, c.role, c.tags)
		class := w.class("a", nil)
		class.Status.InstanceProfile = theirs
		w.resolve()
		own := resolve.ProfileName("c1", "us-east-1", "uid-a", "nodes")
		if c.stays {
			w.expect(class, ready, "True", "Ready")
			if class.Status.InstanceProfile != theirs || w.Counts()["iam:CreateInstanceProfile"] != 0 {
				t.Errorf("%s: the status has %s, calls %v", name, class.Status.InstanceProfile, w.Counts())
			}
		} else {
			w.expect(class, resolve.InstanceProfileReady, "Unknown", resolve.Propagating)
			if class.Status.InstanceProfile != own {
				t.Errorf("%s: the status has %s", name, class.Status.InstanceProfile)
			}
		}
		if got := w.InstanceProfiles()[theirs]; got != c.role {
			t.Errorf("%s: %s has the role %q now", name, theirs, got)
		}
	}
}

// E-03, E-40: as long as an inherited profile cannot be looked up, the class stays unchanged; when the profile is
// gone, or the class has another role, ours is made.
func TestAnInheritedProfileThatGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddRole("other")
	w.karpenterMade(theirPath, "nodes", theirTags("a"))
	class := w.class("a", nil)
	class.Status.InstanceProfile = theirs
	w.resolve()
	w.restart()
	w.faults(throttled("iam:GetInstanceProfile"))
	w.resolve()
	w.expect(class, ready, "True", "Ready")
	if class.Status.InstanceProfile != theirs {
		t.Errorf("while IAM is in trouble the status has %s", class.Status.InstanceProfile)
	}
	w.faults(ec2test.Faults{})
	edit(class, func(s *awsv1.EC2NodeClassSpec) { s.Role = new("other") })
	w.Advance(time.Minute)
	w.resolve()
	if want := resolve.ProfileName("c1", "us-east-1", "uid-a", "other"); class.Status.InstanceProfile != want {
		t.Errorf("with another role the status has %s, want %s", class.Status.InstanceProfile, want)
	}
	edit(class, func(s *awsv1.EC2NodeClassSpec) { s.Role = new("nodes") })
	class.Status.InstanceProfile = theirs
	if err := w.resolver.RemoveProfiles(t.Context(), "uid-a"); err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Hour)
	w.resolve()
	if want := resolve.ProfileName("c1", "us-east-1", "uid-a", "nodes"); class.Status.InstanceProfile != want {
		t.Errorf("once it is gone the status has %s, want %s", class.Status.InstanceProfile, want)
	}
}
