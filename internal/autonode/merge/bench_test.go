package merge_test

import (
	"fmt"
	"testing"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// BenchmarkNodePool merges a policy that lists 800 instance types with a pool that lists 20 (B-15 does so for 500
// pools).
func BenchmarkNodePool(b *testing.B) {
	policy, pool := &hypershiftv1beta1.AutoNodePolicy{}, &hypershiftv1beta1.OpenshiftNodePool{}
	types := make([]string, 800)
	for i := range types {
		types[i] = fmt.Sprintf("m%d.xlarge", i)
	}
	policy.Spec.NodePoolDefaults.Requirements = []merge.Requirement{{Key: instanceType, Operator: "In", Values: types}}
	pool.Spec.Template.Spec.Requirements = []merge.Requirement{{Key: instanceType, Operator: "In", Values: types[:20]}}
	for b.Loop() {
		if merge.NodePool(policy, pool, merge.NodePoolSettings{}).NodePool == nil {
			b.Fatal("not written")
		}
	}
}
