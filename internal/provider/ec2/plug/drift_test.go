package plug

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// E-49: claims are checked when their class resolves to something else or has become ready, not whenever a message
// changes.
func TestWhichChangesOfAClassMayDrift(t *testing.T) {
	t.Parallel()
	class := func(image, status, message string) *awsv1.EC2NodeClass {
		c := &awsv1.EC2NodeClass{}
		c.Status.AMIs = []awsv1.AMI{{ID: image}}
		c.Status.Conditions = []karpenterv1.Condition{
			{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionStatus(status), Message: message},
		}
		return c
	}
	for name, row := range map[string]struct {
		old, fresh *awsv1.EC2NodeClass
		want       bool
	}{
		"image":   {class("ami-1", "True", ""), class("ami-2", "True", ""), true},
		"ready":   {class("ami-1", "Unknown", ""), class("ami-1", "True", ""), true},
		"trouble": {class("ami-1", "True", ""), class("ami-1", "Unknown", ""), false},
		"message": {class("ami-1", "True", "a"), class("ami-1", "True", "b"), false},
		"nothing": {class("ami-1", "True", ""), class("ami-1", "True", ""), false},
	} {
		if got := mayDrift(row.old, row.fresh); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}
