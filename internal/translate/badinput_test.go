package translate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// X-09, P-12: invalid input that this or an older API server accepts gets an error with field, value and what is
// allowed, and an invalid pod gets an event (docs/bad-input.md). Nothing panics.
func TestBadPodsAreNamed(t *testing.T) {
	t.Parallel()
	required := func(op corev1.NodeSelectorOperator, values ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{
							{MatchExpressions: []corev1.NodeSelectorRequirement{
								{Key: "size", Operator: op, Values: values},
							}},
						},
					}}}
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
		open   bool // the rest of the pod can still be planned for
	}{
		"negative request": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("cpu", "-1") },
			"spec.containers[main].resources.requests.cpu is -1: it must not be negative", false},
		"negative init request": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: requests("memory", "-5Gi")}}
		}, "spec.initContainers[i].resources.requests.memory is -5Gi", false},
		"negative overhead": {func(p *corev1.Pod) { p.Spec.Overhead = requests("cpu", "-1m").Requests },
			"spec.overhead.cpu is -1m", false},
		"negative for the pod": {func(p *corev1.Pod) {
			all := requests("cpu", "-2")
			p.Spec.Resources = &all
		}, "spec.resources.requests.cpu is -2", false},
		"unknown operator":  {required("About", "5"), `operator "About" is none of In, NotIn`, false},
		"In without values": {required("In"), `requirement "size": operator In needs at least one value`, false},
		"Gt with a word": {required("Gt", "big"), `requirement "size": operator Gt needs an integer, got "big"`,
			false},
		"Gt with NaN": {required("Gt", "NaN"), `operator Gt needs an integer, got "NaN"`, false},
		"Gt beyond 64 bits": {required("Gt", "99999999999999999999"),
			`operator Gt needs an integer, got "99999999999999999999"`, false},
		"empty key": {func(p *corev1.Pod) { required("Exists")(p); firstExpression(p).Key = "" },
			`requirement "": the key is empty`, false},
		"unknown toleration": {
			func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x", Operator: "Maybe"}} },
			`spec.tolerations[0].operator is "Maybe": want Equal, Exists, Lt or Gt`, true,
		},
		"unknown policy": {func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{TopologyKey: "zone", WhenUnsatisfiable: "Perhaps"},
			}
		}, `whenUnsatisfiable "Perhaps" is neither`, false},
		"unknown match": {func(p *corev1.Pod) {
			p.Spec.Affinity = apartFrom(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: "Like"},
			}})
		}, `operator "Like" is none of In, NotIn, Exists, DoesNotExist`, false},
		"wrong field selector": {func(p *corev1.Pod) { required("Exists")(p); fields(p, "spec.secret") },
			`matchFields key "spec.secret": only metadata.name is known`, false},
	} {
		pod := waitingPod()
		c.change(pod)
		got, err := Pod(resources.NewSpace(), pod, time.Now())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "pod shop/web") {
			t.Errorf("%s: error %v; want one that says %s, and the pod", name, err, c.want)
		}
		if blocked := strings.Contains(got.Shape.Blocked, c.want); blocked == c.open ||
			c.open && got.Shape.Blocked != "" {
			t.Errorf("%s: blocked by %q", name, got.Shape.Blocked)
		}
		node := (&cluster.Node{Name: "n", Labels: map[string]string{"size": "5", "": ""}})
		if node.Admits(got.Shape) != c.open {
			t.Errorf("%s: a node is admitted: %t", name, !c.open)
		}
	}
}

func firstExpression(p *corev1.Pod) *corev1.NodeSelectorRequirement {
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return &required.NodeSelectorTerms[0].MatchExpressions[0]
}

func fields(p *corev1.Pod, key string) {
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	terms[0].MatchFields = []corev1.NodeSelectorRequirement{{Key: key, Operator: "In", Values: []string{"n"}}}
}

func apartFrom(selector *metav1.LabelSelector) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "zone", LabelSelector: selector,
		}}}}
}

// An invalid term beside a valid one is left out, and named; a negative request beside it still blocks.
func TestOneBadTermOfTwo(t *testing.T) {
	t.Parallel()
	pod := waitingPod()
	pod.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Bad"}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Exists"}}},
			},
		}}}
	for _, negative := range []bool{false, true} {
		if negative {
			pod.Spec.Containers[0].Resources = requests("cpu", "-1")
		}
		got, err := Pod(resources.NewSpace(), pod, time.Now())
		if err == nil || !strings.Contains(err.Error(), `operator "Bad"`) || (got.Shape.Blocked != "") != negative {
			t.Errorf("negative %t: error %v, blocked %q", negative, err, got.Shape.Blocked)
		}
	}
}

// X-09, L-02: invalid limits that an older CRD accepted. The pool launches nothing and says why. None of its nodes
// exceeds an invalid limit.
func TestBadLimitsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits, hard karpenterv1.Limits
		want         string
	}{
		"negative nodes": {limits: karpenterv1.Limits{"nodes": resource.MustParse("-1")},
			want: "spec.limits.nodes is -1: it must not be negative"},
		"negative cpu": {limits: karpenterv1.Limits{"cpu": resource.MustParse("-100m")},
			want: "spec.limits.cpu is -100m: it must not be negative"},
		"negative hard": {hard: karpenterv1.Limits{"nodes": resource.MustParse("-7")},
			want: "spec.hardLimits.nodes is -7: it must be a whole number that is not negative"},
		"fraction": {hard: karpenterv1.Limits{"nodes": resource.MustParse("1500m")},
			want: "spec.hardLimits.nodes is 1500m: it must be a whole number"},
		"other key": {hard: karpenterv1.Limits{"cpu": resource.MustParse("1")},
			want: `spec.hardLimits has the key "cpu": only nodes is allowed`},
	} {
		pool := readyPool()
		pool.Spec.Limits, pool.Spec.HardLimits = c.limits, c.hard
		got, err := Pool(resources.NewSpace(), pool)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(got.Blocked, c.want) {
			t.Errorf("%s: error %v, blocked %q; want both to say %s", name, err, got.Blocked, c.want)
		}
		if !got.Invalid || got.Limits.SoftNodes != limit.None || got.Limits.HardNodes != limit.None {
			t.Errorf("%s: limits %+v", name, got.Limits)
		}
	}
	pool := readyPool()
	for _, text := range []string{"8E", "1e70000000"} {
		pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(text)}
		if got, err := Pool(resources.NewSpace(), pool); err != nil || got.Limits.HardNodes <= 1<<40 {
			t.Errorf("%s: error %v, limits %+v: want what is as good as none", text, err, got.Limits)
		}
	}
}

// Amounts beyond any machine stay beyond any machine, in sums too.
func TestEnormousQuantities(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"8E", "9223372036854775807", "100E", "1e30", "9223372036854775807m"} {
		pod := waitingPod()
		for range 200 {
			pod.Spec.Containers = append(pod.Spec.Containers,
				corev1.Container{Resources: requests("memory", text, "cpu", text)})
		}
		shape := shapeOf(t, pod)
		sum := resources.Vector{}
		for range 500 {
			sum = shape.Requests.AddTo(sum)
		}
		if least := int64(1) << 50; shape.Requests.At(resources.Memory) < least || sum.At(resources.Memory) < least ||
			sum.At(resources.CPU) < least {
			t.Errorf("%s: requests %v, 500 of them %v", text, shape.Requests, sum)
		}
	}
}

// Ten thousand requirements, and one with ten thousand values, take milliseconds.
func TestTenThousandRequirements(t *testing.T) {
	t.Parallel()
	pool := readyPool()
	var many []entry
	var values []string
	for i := range 10_000 {
		values = append(values, "v"+strings.Repeat("x", i%7)+string(rune('a'+i%26)))
		many = append(many, entry{Key: "k" + strings.Repeat("y", i%50), Operator: "NotIn",
			Values: []string{values[i]}})
	}
	pool.Spec.Template.Spec.Requirements = append(many, entry{Key: "all", Operator: "In", Values: values})
	got, err := Pool(resources.NewSpace(), pool)
	if err != nil || got.Blocked != "" || got.Requirements.Len() < 50 {
		t.Errorf("error %v, blocked %q, %d keys", err, got.Blocked, got.Requirements.Len())
	}
}
