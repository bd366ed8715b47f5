package plug

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// mayDrift reports whether a class resolves to something else than before, or has become ready: until then nothing
// drifts (E-49). Other changes of conditions do not count, since their messages change with every failure.
func mayDrift(old, fresh client.Object) bool {
	before, was := old.(*awsv1.EC2NodeClass)
	after, is := fresh.(*awsv1.EC2NodeClass)
	if !was || !is {
		return false
	}
	if isReady(after) && !isReady(before) {
		return true
	}
	resolved := func(c *awsv1.EC2NodeClass) awsv1.EC2NodeClassStatus {
		status := c.Status
		status.Conditions = nil
		return status
	}
	return !equality.Semantic.DeepEqual(resolved(before), resolved(after))
}

func isReady(class *awsv1.EC2NodeClass) bool {
	for _, c := range class.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeReady {
			return c.Status == "True" && c.ObservedGeneration == class.Generation
		}
	}
	return false
}
