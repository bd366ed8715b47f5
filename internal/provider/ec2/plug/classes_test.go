package plug

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

const ready = karpenterv1.ConditionTypeReady

// E-02, E-04, E-05, E-40, E-62: a user's class gets finalizer, hash, profile and conditions, and is validated before
// it is ready. Then it can be used for launches.
func TestAClassGetsReady(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("default"))
	c := r.connectNow()
	r.look()
	r.look() // the dry run has accepted the profile
	got := r.class("default")
	if cond := r.condition("default", ready); cond.Status != metav1.ConditionTrue {
		t.Fatalf("Ready is %+v; conditions %+v", cond, got.Status.Conditions)
	}
	hash, err := class.Hash(got)
	if err != nil || got.Annotations[class.HashKey] != hash ||
		got.Annotations[class.HashVersionKey] != class.HashVersion {
		t.Errorf("annotations %v, error %v; want hash %s", got.Annotations, err, hash)
	}
	if !controllerutil.ContainsFinalizer(got, class.Finalizer) {
		t.Errorf("finalizers %v", got.Finalizers)
	}
	counts := r.server.Counts()
	if counts["ec2:RunInstances"] == 0 || counts["ec2:CreateFleet"] == 0 || len(r.server.Instances()) != 0 {
		t.Errorf("calls %v and %d instances, want dry runs and no instance", counts, len(r.server.Instances()))
	}
	if offered, err := c.machines.Catalog(t.Context(), "default"); err != nil || len(offered.Types) < 100 {
		t.Errorf("%d types are offered, error %v", len(offered.Types), err)
	}
	r.server.Forget()
	r.look()
	if counts := r.server.Counts(); counts["ec2:RunInstances"]+counts["ec2:CreateFleet"]+
		counts["ec2:CreateLaunchTemplate"] != 0 {
		t.Errorf("an unchanged class was tried again: %v", counts)
	}
	fresh := newClasses(r.link)
	if _, err := fresh.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if counts := r.server.Counts(); counts["ec2:RunInstances"] != 0 {
		t.Errorf("a class that is ready was tried at a start: %v", counts)
	}
}

// E-62, E-73: a missing right of the role is reported with action and resource, and no longer blocks once it is
// granted.
func TestRightsThatALaunchLacks(t *testing.T) {
	t.Parallel()
	for action, reason := range map[string]string{
		"ec2:CreateLaunchTemplate": ec2.ReasonTemplateRights, "ec2:RunInstances": ec2.ReasonRunRights,
		"ec2:CreateFleet": ec2.ReasonFleetRights,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRegion(t, nil, aClass("default"))
			if err := r.server.SetFaults(ec2test.Faults{Deny: []ec2test.Denial{{Action: action}}}); err != nil {
				t.Fatal(err)
			}
			r.connectNow()
			r.look()
			cond := r.condition("default", karpenterv1.ConditionTypeValidationSucceeded)
			if cond.Status != metav1.ConditionFalse || cond.Reason != reason ||
				!strings.Contains(cond.Message, action) {
				t.Errorf("ValidationSucceeded is %+v; want False, %s, with the action", cond, reason)
			}
			if cond := r.condition("default", ready); cond.Status == metav1.ConditionTrue {
				t.Errorf("Ready is %+v", cond)
			}
		})
	}
}

// E-65, E-66: without credentials or a region the process reports it, on each class too, and changes no good status.
func TestAWSThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	good := aClass("good", func(c *awsv1.EC2NodeClass) {
		c.Status.Conditions = []karpenterv1.Condition{
			{Type: ready, Status: metav1.ConditionTrue, Reason: ready, ObservedGeneration: 1},
		}
	})
	for reason, load := range map[string]func(context.Context) (aws.Config, error){
		ReasonCredentials: func(context.Context) (aws.Config, error) {
			return aws.Config{Region: "us-east-1",
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{}, errors.New("no source\n\thas any")
				})}, nil
		},
		ReasonRegion: func(context.Context) (aws.Config, error) {
			return aws.Config{HTTPClient: nobody{}, Credentials: aws.AnonymousCredentials{}}, nil
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRegion(t, nil, aClass("new"), good.DeepCopy())
			r.link.load = load
			if text := r.ready(); text != "" {
				t.Errorf("before it was tried the probe says %q", text)
			}
			result, err := connector{r.link, t.Context()}.Reconcile(t.Context(), request())
			if err != nil || result.RequeueAfter == 0 || r.connected() != nil {
				t.Fatalf("result %+v, error %v; want another try", result, err)
			}
			r.look()
			if text := r.ready(); !strings.Contains(text, reason) {
				t.Errorf("the probe says %q, want %s", text, reason)
			}
			if cond := r.condition("new", ready); cond.Status != metav1.ConditionUnknown || cond.Reason != reason {
				t.Errorf("Ready of a new class is %+v", cond)
			}
			if cond := r.condition("good", ready); cond.Status != metav1.ConditionTrue {
				t.Errorf("Ready of a class that was ready is %+v", cond)
			}
			if len(r.events) != 2 || !strings.HasPrefix(r.events[0], reason) || strings.Contains(r.events[0], "\n") {
				t.Errorf("events %q, want one on each class", r.events)
			}
			if list, err := (lazy{link: r.link}).List(t.Context()); err == nil {
				t.Errorf("listed %v without an error: nobody knows what there is", list)
			}
		})
	}
}

// E-04: a deleted class waits for its claims; its profiles and templates are deleted with it.
func TestAClassThatGoes(t *testing.T) {
	t.Parallel()
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Spec: karpenterv1.NodeClaimSpec{
		NodeClassRef: &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: "default"}}}
	r := newRegion(t, nil, aClass("default"), claim)
	r.connectNow()
	r.look()
	if len(r.server.InstanceProfiles()) != 1 || len(r.server.LaunchTemplates()) != 1 {
		t.Fatalf("profiles %v, templates %v; want one of each", r.server.InstanceProfiles(),
			r.server.LaunchTemplates())
	}
	if err := r.kube.Delete(t.Context(), r.class("default")); err != nil {
		t.Fatal(err)
	}
	r.look()
	r.look()
	if len(r.events) != 1 || !strings.Contains(r.events[0], EventWaiting) || !strings.Contains(r.events[0], "n0") {
		t.Errorf("events %q, want one that names the claim", r.events)
	}
	if err := r.kube.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.look()
	err := r.kube.Get(t.Context(), client.ObjectKey{Name: "default"}, &awsv1.EC2NodeClass{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the class is there still, or: %v", err)
	}
	if len(r.server.InstanceProfiles()) != 0 || len(r.server.LaunchTemplates()) != 0 {
		t.Errorf("left behind: profiles %v, templates %v", r.server.InstanceProfiles(), r.server.LaunchTemplates())
	}
}

// E-04: without the rights for instance profiles of ours, a class that names one of its users can be deleted. One with
// a role waits: its profiles would be left behind.
func TestAClassThatGoesWithoutRightsForProfiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role  bool
		stays bool
	}{"a role": {true, true}, "a profile of the user's": {false, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := aClass("default")
			if !c.role {
				of.Spec.Role, of.Spec.InstanceProfile = nil, new("mine")
			}
			r := newRegion(t, nil, of)
			r.connectNow()
			r.look()
			err := r.server.SetFaults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "iam:ListInstanceProfiles"}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.kube.Delete(t.Context(), r.class("default")); err != nil {
				t.Fatal(err)
			}
			if _, err := r.classes.Reconcile(t.Context(), request()); (err != nil) != c.stays {
				t.Errorf("error %v, want one: %t", err, c.stays)
			}
			err = r.kube.Get(t.Context(), client.ObjectKey{Name: "default"}, &awsv1.EC2NodeClass{})
			if stays := err == nil; stays != c.stays || client.IgnoreNotFound(err) != nil {
				t.Errorf("the class stays: %t (%v), want %t", stays, err, c.stays)
			}
		})
	}
}

// E-05: claims that another program annotated get new annotations and do not drift; a drifted one keeps its hash.
func TestAnnotationsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	named := func(name string, drifted metav1.ConditionStatus) *karpenterv1.NodeClaim {
		return &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{class.HashKey: "1", class.HashVersionKey: "v4"},
			},
			Spec: karpenterv1.NodeClaimSpec{NodeClassRef: &karpenterv1.NodeClassReference{
				Group: awsv1.Group, Kind: "EC2NodeClass", Name: "default"}},
			Status: karpenterv1.NodeClaimStatus{
				Conditions: []karpenterv1.Condition{{Type: karpenterv1.ConditionTypeDrifted, Status: drifted}},
			},
		}
	}
	theirs := aClass("default", func(c *awsv1.EC2NodeClass) {
		c.Annotations = map[string]string{class.HashKey: "1", class.HashVersionKey: "v4"}
	})
	r := newRegion(t, nil, theirs, named("fit", metav1.ConditionFalse), named("drifted", metav1.ConditionTrue))
	r.connectNow()
	r.look()
	hash := r.class("default").Annotations[class.HashKey]
	for name, want := range map[string]string{"fit": hash, "drifted": "1"} {
		var claim karpenterv1.NodeClaim
		if err := r.kube.Get(t.Context(), client.ObjectKey{Name: name}, &claim); err != nil {
			t.Fatal(err)
		}
		if claim.Annotations[class.HashKey] != want || claim.Annotations[class.HashVersionKey] != class.HashVersion {
			t.Errorf("%s has %v, want hash %s", name, claim.Annotations, want)
		}
	}
}

// E-79: the error for a cluster that EKS does not know names the setting to use instead.
func TestAClusterThatEKSDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := newRegion(t, func(s *settings) { s.clusterName = "other" }, aClass("default"))
	r.server.AddNetwork("other") // it has what it needs, but not of EKS
	r.connectNow()
	r.look()
	cond := r.condition("default", karpenterv1.ConditionTypeValidationSucceeded)
	if cond.Status != metav1.ConditionFalse || cond.Reason != class.ReasonClusterNotFound ||
		!strings.Contains(cond.Message, `"other"`) || !strings.Contains(cond.Message, "--cluster-service-cidr") {
		t.Errorf("ValidationSucceeded is %+v", cond)
	}
}

// E-12: pods' addresses are counted if Amazon's network plug-in runs, according to its settings.
func TestWherePodsHaveTheirAddressesFrom(t *testing.T) {
	t.Parallel()
	plugin := func(prefixes string) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-node"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "aws-node", Env: []corev1.EnvVar{{Name: "ENABLE_PREFIX_DELEGATION", Value: prefixes}}},
		}
		return d
	}
	for name, c := range map[string]struct {
		objects []client.Object
		want    subnet.PodAddresses
	}{
		"another plug-in": {nil, subnet.Elsewhere},
		"Amazon's":        {[]client.Object{plugin("false")}, subnet.Secondary},
		"with prefixes":   {[]client.Object{plugin("true")}, subnet.Prefixes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegion(t, nil, c.objects...)
			r.connectNow()
			if got := r.known().pods; got != c.want {
				t.Errorf("addresses are from %v, want %v", got, c.want)
			}
		})
	}
}
