package translate_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// B-20: a pool can set the cost of its nodes beside their price. Without a value, or with an invalid one, the default
// applies; the error names annotation, value and what is allowed.
func TestWhatANodeCostsBesideItsPrice(t *testing.T) {
	t.Parallel()
	const usual = resources.Money(7000)
	for value, want := range map[string]resources.Money{
		"0": 0, "0.02": 20_000, ".5": 500_000, "3": 3_000_000, "1000000": resources.MaxPrice,
		"": usual, "-1": usual, "+1": usual, "1e3": usual, "1000001": usual, "0x10": usual, "NaN": usual,
		"0.02 $": usual, "1_0": usual,
	} {
		pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			karpenterv1.NodeOverheadPriceAnnotationKey: value}}}
		got, err := translate.NodeOverheadPrice(pool, usual)
		if got != want || (err != nil) != (want == usual) {
			t.Errorf("%q comes to %s and %v, want %s", value, got, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), `annotation joiner.sh/node-overhead-price is "`+value+
			`": want a decimal `+"number of dollars per hour from 0 to 1000000") {
			t.Errorf("%q: %v", value, err)
		}
	}
	if got, err := translate.NodeOverheadPrice(&karpenterv1.NodePool{}, usual); got != usual || err != nil {
		t.Errorf("without the annotation it is %s and %v, want %s", got, err, usual)
	}
}
