package ec2_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// E-01: a class with enclaves launches only types that support them, at any price, with enclaves enabled. A claim for
// other types gets nothing, without a call of EC2. Without the field, and with false, enclaves are off.
func TestEnclaves(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	for name, c := range map[string]struct {
		options *awsv1.EnclaveOptions
		kind    string
		on      bool
	}{
		"asked for": {&awsv1.EnclaveOptions{Enabled: true}, "m6i.xlarge", true},
		"false":     {&awsv1.EnclaveOptions{}, "m5.large", false},
		"left out":  {nil, "m5.large", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, s, ec2test.Faults{})
			a.kube.classes["default"].Spec.EnclaveOptions = c.options
			wants := func(types ...string) func(*karpenterv1.NodeClaim) {
				return func(c *karpenterv1.NodeClaim) {
					c.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
						in(corev1.LabelInstanceTypeStable, types...),
						in(karpenterv1.CapacityTypeLabelKey, karpenterv1.CapacityTypeOnDemand)}
				}
			}
			i, err := a.Launch(t.Context(), claim("n1", wants("m5.large", "m6i.xlarge")), time.Time{})
			if err != nil || i.Type != c.kind {
				t.Fatalf("%s, error %v, want %s", i.Type, err, c.kind)
			}
			if is := a.server.Instances()[0]; is.Enclaves() != c.on {
				t.Errorf("instance %s has enclaves: %t, want %t", is.ID, is.Enclaves(), c.on)
			}
			before := a.server.Counts()["ec2:CreateFleet"]
			_, err = a.Launch(t.Context(), claim("n2", wants("t3.micro", "t3.small")), time.Time{})
			var none *provider.InsufficientCapacityError
			if refused := errors.As(err, &none); refused != c.on ||
				a.server.Counts()["ec2:CreateFleet"] == before != c.on {
				t.Errorf("types without enclaves: error %v", err)
			}
			if c.on && !strings.Contains(err.Error(), "t3.micro") {
				t.Errorf("%v does not say what was asked for", err)
			}
		})
	}
}
