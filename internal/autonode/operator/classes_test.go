package operator_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

func (s *scene) classWrapper(name string) *hypershiftv1.OpenshiftEC2NodeClass {
	s.t.Helper()
	var found hypershiftv1.OpenshiftEC2NodeClass
	s.must(s.guest.Get(s.t.Context(), types.NamespacedName{Name: name}, &found))
	return &found
}

func (s *scene) madeClass(name string) *karpenterawsv1.EC2NodeClass {
	s.t.Helper()
	var found karpenterawsv1.EC2NodeClass
	s.must(s.guest.Get(s.t.Context(), types.NamespacedName{Name: name}, &found))
	return &found
}

func (s *scene) classSays(name, kind string) karpenterv1.Condition {
	said, _ := condition.Get(s.classWrapper(name).Status.Conditions, kind)
	return said
}

// R28, R31: a node class is written when policy or user data change, and only then. What nodes start with is read
// every minute, since no event tells of a new release.
func TestANodeClassIsWrittenWhenItChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big")}, policyOf(1))
	s.read()
	registry := s.behind(s.guest)
	if again := s.step(s.classes, "big").RequeueAfter; again != time.Minute {
		t.Errorf("again after %s, want 1m", again)
	}
	made, said := s.madeClass("big"), s.classWrapper("big")
	if !slices.Contains(said.Finalizers, "hypershift.openshift.io/ec2-nodeclass-finalizer") {
		t.Errorf("finalizers %v", said.Finalizers)
	}
	if got := s.classSays("big",
		hypershiftv1beta1.ConditionTypeRootVolumeOverridden); got.Status != metav1.ConditionFalse ||
		got.Reason != hypershiftv1beta1.ReasonNoRootVolumeMapping {
		t.Errorf("RootVolumeOverridden is %+v", got)
	}
	s.clock.Advance(time.Minute)
	s.step(s.classes, "big")
	if s.madeClass("big").ResourceVersion != made.ResourceVersion ||
		s.classWrapper("big").ResourceVersion != said.ResourceVersion {
		t.Error("it was written again, though nothing changed")
	}
	s.bootstrap.UserData = "boot of a new release"
	s.step(s.classes, "big")
	if got := s.madeClass("big"); *got.Spec.UserData != "boot of a new release" || got.Labels["joiner.sh/none"] != "" {
		t.Errorf("nodes start with %q", *got.Spec.UserData)
	}
	for verb, want := range map[string]float64{"create": 1, "update": 1} {
		if n := controllertest.Count(t, registry, "autonode_writes_total", "EC2NodeClass", verb); n != want {
			t.Errorf("%v writes count as %s of EC2NodeClass, want %v", n, verb, want)
		}
	}
	if said := s.tape.Said(); len(said) != 0 {
		t.Errorf("said %q", said)
	}
}

// R31, G14: when bootstrap data are read again: after 1 s if they do not exist yet, after 10 s if they cannot be read,
// and after a minute once they exist, even while the node class is being deleted.
func TestHowSoonANodeClassIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big")}, policyOf(1))
	s.read()
	bootstrap := s.bootstrap
	s.bootstrap = nil
	if again := s.step(s.classes, "big").RequeueAfter; again != time.Second {
		t.Errorf("what is missing is looked for after %s, want 1s", again)
	}
	if got := s.classSays("big",
		hypershiftv1beta1.ConditionTypePolicyApplied).Message; got != "the user data of this node class is not there yet" {
		t.Errorf("it waits for %q", got)
	}
	s.unread = errForbidden
	if again := s.step(s.classes, "big").RequeueAfter; again != 10*time.Second {
		t.Errorf("what cannot be read is read after %s, want 10s", again)
	}
	if got := s.classSays("big",
		hypershiftv1beta1.ConditionTypePolicyApplied).Message; got != "what nodes start with cannot be read at the moment" {
		t.Errorf("it says %q", got)
	}
	s.bootstrap, s.unread = bootstrap, nil
	s.step(s.classes, "big")
	made := s.madeClass("big")
	made.Finalizers = []string{"example.com/held"}
	s.must(s.guest.Update(t.Context(), made))
	s.must(s.guest.Delete(t.Context(), made))
	if again := s.step(s.classes, "big").RequeueAfter; again != time.Minute {
		t.Errorf("while it is going: again after %s, want 1m", again)
	}
	if got := s.classSays("big",
		hypershiftv1beta1.ConditionTypePolicyApplied).Message; got != "the EC2NodeClass is being deleted and will be created again" {
		t.Errorf("it says %q", got)
	}
}

// G14: what is wrong with a node class keeps it from being written, and stands on it, all of it. R30: a tag that has
// no effect is told.
func TestWhatIsWrongWithANodeClassIsSaid(t *testing.T) {
	t.Parallel()
	tagged := class("tagged")
	tagged.Spec.Tags = map[string]string{"kubernetes.io/cluster/infra": "mine"}
	big := class("big")
	for _, size := range []int64{70000, 70001} {
		big.Spec.BlockDeviceMappings = append(big.Spec.BlockDeviceMappings, hypershiftv1.BlockDeviceMapping{
			DeviceName: "/dev/xvdb", EBS: &hypershiftv1.BlockDevice{VolumeSizeGiB: &size},
		})
	}
	s := newScene(t, []client.Object{big, tagged}, policyOf(1))
	s.read()
	s.step(s.classes, "tagged")
	want := "tagged " + operator.ReasonIgnoredTags +
		": spec.tags: the hosted cluster or the autoscaler has its own value for kubernetes.io/cluster/infra"
	if said := s.tape.Said(); !slices.Equal(said, []string{want, want}) { // on wrapper and EC2NodeClass
		t.Errorf("said %q, want %q on both", said, want)
	}
	s.step(s.classes, "big")
	const says = "spec.blockDeviceMappings[0].ebs.volumeSizeGiB: is 70000: it must be from 1 to 59000, or 59392; " +
		"spec.blockDeviceMappings[1].ebs.volumeSizeGiB: is 70001: it must be from 1 to 59000, or 59392"
	for _, kind := range []string{hypershiftv1beta1.ConditionTypePolicyApplied, hypershiftv1beta1.ConditionTypeReady} {
		if got := s.classSays("big", kind); got.Status != metav1.ConditionFalse || got.Message != says {
			t.Errorf("%s is %+v, want it to say %q", kind, got, says)
		}
	}
	var made karpenterawsv1.EC2NodeClassList
	if s.must(s.guest.List(t.Context(), &made)); len(made.Items) != 1 {
		t.Errorf("%d EC2NodeClasses, want that of the tagged one", len(made.Items))
	}
}

// R26: the wrapper shows what its EC2NodeClass has found, in the words of its own API, and loses what is no longer
// found.
func TestTheWrapperShowsWhatItsNodeClassHasFound(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big")}, policyOf(1))
	s.read()
	s.step(s.classes, "big")
	end := metav1.NewTime(s.clock.Now().Add(time.Hour))
	reservation := func(id, criteria string) karpenterawsv1.CapacityReservation {
		return karpenterawsv1.CapacityReservation{ID: id, AvailabilityZone: "us-east-1a", EndTime: &end,
			InstanceMatchCriteria: criteria, InstanceType: "m5.large", OwnerID: "123456789012"}
	}
	shown := func(id string, criteria hypershiftv1.InstanceMatchCriteria) hypershiftv1.CapacityReservation {
		return hypershiftv1.CapacityReservation{ID: id, AvailabilityZone: "us-east-1a", EndTime: &end,
			InstanceMatchCriteria: criteria, InstanceType: "m5.large", OwnerID: "123456789012"}
	}
	made := s.madeClass("big")
	made.Status = karpenterawsv1.EC2NodeClassStatus{
		Subnets:        []karpenterawsv1.Subnet{{ID: "subnet-1", Zone: "us-east-1a", ZoneID: "use1-az1"}},
		SecurityGroups: []karpenterawsv1.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		CapacityReservations: []karpenterawsv1.CapacityReservation{reservation("cr-1", "open"), reservation("cr-2",
			"targeted")},
		Conditions: []karpenterv1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready",
			LastTransitionTime: metav1.NewTime(s.clock.Now())}},
	}
	s.must(s.guest.Status().Update(t.Context(), made))
	s.step(s.classes, "big")
	got := s.classWrapper("big").Status
	for i := range got.CapacityReservations { // read back in the local time zone
		if e := got.CapacityReservations[i].EndTime; e != nil && e.Equal(&end) {
			got.CapacityReservations[i].EndTime = &end
		}
	}
	if want := []hypershiftv1.Subnet{{ID: "subnet-1", Zone: "us-east-1a",
		ZoneID: "use1-az1"}}; !reflect.DeepEqual(got.Subnets, want) {
		t.Errorf("subnets %v, want %v", got.Subnets, want)
	}
	if want := []hypershiftv1.SecurityGroup{{ID: "sg-1", Name: "nodes"}}; !reflect.DeepEqual(got.SecurityGroups,
		want) {
		t.Errorf("security groups %v, want %v", got.SecurityGroups, want)
	}
	want := []hypershiftv1.CapacityReservation{shown("cr-1", hypershiftv1.InstanceMatchCriteriaOpen),
		shown("cr-2", hypershiftv1.InstanceMatchCriteriaTargeted)}
	if !reflect.DeepEqual(got.CapacityReservations, want) {
		t.Errorf("capacity reservations %v, want %v", got.CapacityReservations, want)
	}
	if ready := s.classSays("big", "Ready"); ready.Status != metav1.ConditionTrue || ready.Reason != "Ready" {
		t.Errorf("Ready is %+v", ready)
	}
	made = s.madeClass("big")
	made.Status = karpenterawsv1.EC2NodeClassStatus{}
	s.must(s.guest.Status().Update(t.Context(), made))
	s.step(s.classes, "big")
	if got := s.classWrapper("big").Status; len(got.Subnets)+len(got.SecurityGroups)+
		len(got.CapacityReservations) != 0 {
		t.Errorf("it still shows %v", got)
	}
}
