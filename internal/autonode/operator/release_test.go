package operator_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// released is a scene whose classes start with what a release is, from Secrets or from a file.
func released(t *testing.T, secrets bool, release string, guest ...client.Object) *scene {
	t.Helper()
	s := newScene(t, guest, policyOf(1))
	s.kinds[1] = operator.EC2NodeClasses(operator.AWSConfig{
		Infra: merge.Infra{InfraID: "infra", InstanceProfile: "nodes"}, RootVolume: merge.DefaultRootVolume(),
		VersionsFromStatus: secrets, ReleaseVersion: release,
		Bootstrap: func(context.Context, string, string) (*merge.Bootstrap, error) { return s.bootstrap, s.unread },
	})
	s.read()
	s.behind(s.guest)
	return s
}

// asks lets a class ask for a version, and says which one HyperShift has resolved for it.
func (s *scene) asks(version, resolved string) {
	s.t.Helper()
	class := s.classWrapper("big")
	class.Spec.Version = version
	class.Generation++
	s.must(s.guest.Update(s.t.Context(), class))
	class.Status.Version = resolved
	s.must(s.guest.Status().Update(s.t.Context(), class))
}

// starts steps and demands what the class says of its version, what of the policy, and what nodes start with; "" for
// no class.
func (s *scene) starts(what string, resolved metav1.ConditionStatus, reason string, applied metav1.ConditionStatus,
	userData string) {
	s.t.Helper()
	s.step(s.classes, "big")
	if said := s.classSays("big", hypershiftv1beta1.ConditionTypeVersionResolved); said.Status != resolved ||
		said.Reason != reason {
		s.t.Errorf("%s: VersionResolved is %s %s (%s), want %s %s", what, said.Status, said.Reason, said.Message,
			resolved, reason)
	}
	if said := s.classSays("big", hypershiftv1beta1.ConditionTypePolicyApplied); said.Status != applied {
		s.t.Errorf("%s: PolicyApplied is %s %s (%s), want %s", what, said.Status, said.Reason, said.Message, applied)
	}
	ready := s.classSays("big", hypershiftv1beta1.ConditionTypeReady)
	if resolved == metav1.ConditionFalse && applied != metav1.ConditionUnknown &&
		(ready.Status != resolved || ready.Reason != reason) {
		s.t.Errorf("%s: Ready is %+v", what, ready)
	}
	var class karpenterawsv1.EC2NodeClass
	err := s.guest.Get(s.t.Context(), types.NamespacedName{Name: "big"}, &class)
	if (err == nil) != (userData != "") || err == nil && *class.Spec.UserData != userData {
		s.t.Errorf("%s: nodes start with %+v (%v), want %q", what, class.Spec.UserData, err, userData)
	}
}

// with Secrets, HyperShift reports the version of a class in its status. Until that is the requested one, nodes
// start as before. The root volume follows the policy all the same: an unavailable version must not hold it back.
func TestA08_WithSecretsTheStatusTellsTheVersion(t *testing.T) {
	t.Parallel()
	s := released(t, true, "", class("big"))
	s.asks("4.21.0", "")
	s.starts("asked for at once", "False", hypershiftv1beta1.ReasonVersionNotResolved, "Unknown", "")
	if said := s.classSays("big", hypershiftv1beta1.ConditionTypePolicyApplied); !strings.Contains(said.Message,
		"version 4.21.0") {
		t.Errorf("it waits for %q", said.Message)
	}
	s.asks("4.21.0", "4.21.0")
	s.starts("resolved", "True", hypershiftv1beta1.ReasonVersionResolved, "True", "boot")
	s.asks("4.22.0", "4.21.0")
	s.bootstrap = &merge.Bootstrap{UserData: "half a release", AMIs: []string{"ami-2"}}
	policy := policyOf(2)
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{IOPS: new(int64(4000))}
	s.learn(operator.Answer{Policy: policy})
	s.starts("changed", "False", hypershiftv1beta1.ReasonVersionNotResolved, "True", "boot")
	if iops := s.madeClass("big").Spec.BlockDeviceMappings[0].EBS.IOPS; iops == nil || *iops != 4000 {
		t.Error("the policy does not follow")
	}
	s.asks("4.22.0", "4.22.0")
	s.bootstrap.UserData = "the new one"
	s.starts("resolved again", "True", hypershiftv1beta1.ReasonVersionResolved, "True", "the new one")
	s.asks("", "4.22.0")
	s.starts("removed", "True", hypershiftv1beta1.ReasonVersionResolved, "True", "the new one")
	s.bootstrap = nil // the Secret is being replaced
	s.starts("without a Secret", "True", hypershiftv1beta1.ReasonVersionResolved, "Unknown", "the new one")
	s.asks("4.23.0", "4.22.0")
	s.starts("and asked for another", "False", hypershiftv1beta1.ReasonVersionNotResolved, "True", "the new one")
}

// with a file there is one release. A class that asks for another is not made; one that is there stays, says so,
// and follows the policy.
func TestA08_WithAFileThereIsOneRelease(t *testing.T) {
	t.Parallel()
	for release, says := range map[string]string{
		"":       "spec.version: take it away: it is 4.20.0, and nodes start with the release that is provided",
		"4.21.0": "spec.version: take it away: it is 4.20.0, and the release that is provided is 4.21.0",
	} {
		s := released(t, false, release, class("big"))
		s.asks("4.20.0", "4.20.0")
		s.starts("asked for at once", "False", hypershiftv1beta1.ReasonVersionNotSupported, "False", "")
		if said := s.classSays("big", hypershiftv1beta1.ConditionTypeReady); said.Message != says {
			t.Errorf("it says %q, want %q", said.Message, says)
		}
		s.policySays(metav1.ConditionFalse, hypershiftv1beta1.ReasonVersionNotSupported)
		s.asks("", "")
		s.starts("none asked for", "True", hypershiftv1beta1.ReasonVersionResolved, "True", "boot")
		s.asks(release, "")
		s.starts("removed", "True", hypershiftv1beta1.ReasonVersionResolved, "True", "boot")
		s.asks("4.20.0", "")
		policy := policyOf(2)
		policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{IOPS: new(int64(4000))}
		s.learn(operator.Answer{Policy: policy})
		s.starts("changed", "False", hypershiftv1beta1.ReasonVersionNotSupported, "True", "boot")
		if iops := s.madeClass("big").Spec.BlockDeviceMappings[0].EBS.IOPS; iops == nil || *iops != 4000 {
			t.Error("the policy does not follow")
		}
	}
}
