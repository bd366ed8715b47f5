package evaluator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// H14, F7: what is fine needs no words. The mirror of a static pod is that of the node that is there now, not of one
// that had its name.
func TestWhatIsFineNeedsNoWords(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture)
	policy := policyOf(t, w.Sources)
	for _, c := range []struct {
		line, node string
		want       evaluator.Class
	}{
		{"kube-system/etcd-cp1 node=cp1 mirror owner=Node/cp1", "uid", evaluator.StaticPod},
		{"kube-system/etcd-cp1 node=cp1 mirror owner=Node/cp1", "former", evaluator.OnProtectedNode},
		{"ops/web node=cp1", "", evaluator.AuthorizedPod},
	} {
		pod, err := schedulingtest.ParsePod(c.line)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pod.OwnerReferences {
			pod.OwnerReferences[i].UID = types.UID(c.node)
		}
		found, err := policy.Inspect(pod, w.Cluster())
		fine := c.want != evaluator.OnProtectedNode
		if err != nil || len(found) != 1 || found[0].Class != c.want || found[0].Class.Fine() != fine ||
			(found[0].Found+found[0].Steps+found[0].Authorize == "") != fine {
			t.Errorf("%s, owner %s: %+v, error %v, want %s", c.line, c.node, found, err, c.want)
		}
	}
	for _, class := range evaluator.Classes() {
		if class.Fine() != (class == evaluator.AuthorizedPod || class == evaluator.StaticPod) {
			t.Errorf("%s is fine: %t", class, class.Fine())
		}
	}
}
