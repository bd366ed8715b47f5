package disruption

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
)

// L-42: the engine counts a claim as the API server has it. A claim whose intent is not true is not leaving, whatever
// the reason.
func TestAChoiceThatIsNotTrueIsNone(t *testing.T) {
	t.Parallel()
	kind, reason := karpenterv1.ConditionTypeDisruptionReason, "NodeLimitExceeded"
	for name, c := range map[string]struct {
		value *condition.Value
		want  engine.CountedClaim
	}{
		"nothing": {nil, engine.CountedClaim{}},
		"true": {new(condition.True(kind, reason, "")),
			engine.CountedClaim{Marked: true, Intent: "NodeLimitExceeded"}},
		"false":   {new(condition.False(kind, reason, "")), engine.CountedClaim{}},
		"unknown": {new(condition.Unknown(kind, reason, "")), engine.CountedClaim{}},
	} {
		claim := &karpenterv1.NodeClaim{}
		c.want.Name, claim.Name = "a", "a"
		if c.value != nil {
			condition.Set(&claim.Status.Conditions, 0, *c.value, at(1000))
		}
		if got := countedClaim(claim); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		now := metav1.NewTime(at(1))
		claim.DeletionTimestamp = &now
		claim.Annotations = map[string]string{karpenterv1.ReplacesAnnotationKey: "b"}
		c.want.Deleting, c.want.Replaces = true, []string{"b"}
		if got := countedClaim(claim); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, going: %+v, want %+v", name, got, c.want)
		}
	}
}
