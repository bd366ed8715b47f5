package translate_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// K-55. Values of the annotation joiner.sh/spot-ratio; an invalid one is reported and allows any mix.
func TestK55_TheSpotRatioIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"70%": 30, "0%": 100, "100%": 0, "5%": 95, "99%": 1,
		"": -1, "70": -1, "0.7": -1, "101%": -1, "-1%": -1, "07%": -1, "70 %": -1, "70%%": -1, "most": -1} {
		pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{karpenterv1.SpotRatioAnnotationKey: text}}}
		got, err := translate.OnDemandPercent(pool)
		if want >= 0 && (got != want || err != nil) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
		if want < 0 && (got != 0 || err == nil ||
			!strings.HasPrefix(err.Error(), `annotation joiner.sh/spot-ratio is "`+text+
				`": want a whole percentage from 0% to 100%`)) {
			t.Errorf("%q: %d, %v, want a fault", text, got, err)
		}
	}
	if got, err := translate.OnDemandPercent(&karpenterv1.NodePool{}); got != 0 || err != nil {
		t.Errorf("without the annotation it is %d, %v", got, err)
	}
}
