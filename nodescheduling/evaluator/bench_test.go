package evaluator_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// fleet is a cache of many nodes.
type fleet struct {
	list   []*corev1.Node
	byName map[string]*corev1.Node
}

func (f fleet) Ready() bool                          { return true }
func (f fleet) Synced() bool                         { return true }
func (f fleet) Get(name string) (*corev1.Node, bool) { n, found := f.byName[name]; return n, found }
func (f fleet) All() iter.Seq[*corev1.Node]          { return slices.Values(f.list) }

// newFleet has three nodes of the control plane and workers in three zones, with the labels that nodes usually have.
func newFleet(size int) fleet {
	f := fleet{byName: map[string]*corev1.Node{}}
	for i := range size {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
				corev1.LabelTopologyZone: string(rune('a' + i%3)), corev1.LabelArchStable: "amd64",
				corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: "m5.large",
				"team": fmt.Sprint(i % 20)}}}
		if i < 3 {
			node.Labels["node-role.kubernetes.io/control-plane"] = ""
			node.Spec.Taints = []corev1.Taint{
				{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule},
			}
		}
		f.list, f.byName[name] = append(f.list, node), node
	}
	return f
}

// BenchmarkEvaluate is N68: what a verdict costs in a cluster of 5,000 nodes. Ordinary pods must stay far below a
// millisecond; those that look at nodes pay for the look.
func BenchmarkEvaluate(b *testing.B) {
	cluster := evaluator.Cluster{Nodes: newFleet(5000)}
	policy, _, err := evaluator.New(sources(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, line string }{
		{"ordinary pod", "alice create pod app/web tolerate=node.kubernetes.io/not-ready:NoExecute"},
		{"binding to a worker", "system:kube-scheduler bind app/web to=node-4000"},
		{"update of labels", "alice update pod app/web tolerate=* -> label=a=b"},
		{"pod of a zone", "alice create pod app/web select=topology.kubernetes.io/zone=b"},
		{"pod of no node", "alice create pod app/web select=team=99"},
		{"pod with an own toleration", "alice create pod app/web tolerate=dedicated"},
		{"daemon on a worker", "alice create pod app/web tolerate=* need=name=node-4000"},
		{"daemon on the control plane, denied", "alice create pod app/web tolerate=* need=name=node-1"},
	} {
		asked, err := schedulingtest.ParseRequest(c.line)
		if err != nil {
			b.Fatal(err)
		}
		request := asked.Request
		if err := request.SetObjects(asked.Object, asked.Old); err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				policy.Evaluate(&request, cluster)
			}
		})
	}
}

// N68: an ordinary pod costs no allocation at all.
func TestAnOrdinaryPodAllocatesNothing(t *testing.T) {
	policy, _, err := evaluator.New(sources(t))
	if err != nil {
		t.Fatal(err)
	}
	cluster := evaluator.Cluster{Nodes: newFleet(3)}
	request := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "app",
		User: evaluator.User{Name: "alice"}, Pod: &corev1.Pod{
			Spec: corev1.PodSpec{
				Tolerations: []corev1.Toleration{
					{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists},
				},
			},
		}}
	if n := testing.AllocsPerRun(100, func() { policy.Evaluate(&request, cluster) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
