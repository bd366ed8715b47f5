package cases

import (
	"context"
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Labels of generated cases beside the usual ones.
const (
	labelGeneration = "example.com/generation" // of an instance type, a number; not every type has it
	labelRack       = "rack"                   // pools may define it
	labelTeam       = "team"                   // pools may leave it open
	labelRevision   = "revision"               // of pods
	resourceGPU     = "example.com/gpu"
)

// Generate makes the case of a seed. The same seed gives the same case.
func Generate(seed uint64) *Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), features: map[string]bool{}, result: &Case{}}
	g.namespaces()
	g.types()
	g.pools()
	g.machines()
	g.daemons()
	for i := range 1 + g.IntN(6) {
		g.workload(i)
	}
	return g.result
}

type generator struct {
	*rand.Rand
	features map[string]bool
	result   *Case
	sequence int
}

// likely returns true with the given chance in percent.
func (g *generator) likely(percent int) bool { return g.IntN(100) < percent }

// uses decides once per case whether it uses a feature, so that cases differ in kind and not only in detail.
func (g *generator) uses(feature string) bool {
	use, decided := g.features[feature]
	if !decided {
		use = g.likely(35)
		g.features[feature] = use
	}
	return use
}

func one[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// some returns a non-empty part of the list, in its order.
func some[T any](g *generator, list ...T) []T {
	var part []T
	for _, item := range list {
		if g.likely(50) {
			part = append(part, item)
		}
	}
	if len(part) == 0 {
		part = append(part, one(g, list...))
	}
	return part
}

func (g *generator) meta(namespace, name string) metav1.ObjectMeta {
	g.sequence++
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), ResourceVersion: "1",
		CreationTimestamp: metav1.Unix(1_700_000_000+int64(g.sequence), 0),
	}
}

func (g *generator) namespaces() {
	for _, pair := range [][2]string{{"default", ""}, {"infra", "blue"}, {"shop", "red"}} {
		name, team := pair[0], pair[1]
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
			ResourceVersion: "1"}}
		namespace.Labels = map[string]string{corev1.LabelMetadataName: name}
		if team != "" {
			namespace.Labels[labelTeam] = team
		}
		g.result.Namespaces = append(g.result.Namespaces, namespace)
	}
}

func wellKnown() map[requirement.Key]bool {
	known := map[requirement.Key]bool{}
	for _, key := range []string{
		corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable,
		"karpenter.sh/capacity-type", labelGeneration,
	} {
		known[requirement.Key(key)] = true
	}
	return known
}

// daemons adds at most two DaemonSets; at most one has a host port.
func (g *generator) daemons() {
	if !g.uses("daemons") {
		return
	}
	for i := range 1 + g.IntN(2) {
		namespace := one(g, "default", "infra")
		set := &appsv1.DaemonSet{ObjectMeta: g.meta(namespace, fmt.Sprint("d", i))}
		labels := map[string]string{"app": fmt.Sprint("d", i)}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template.Labels = labels
		spec := &set.Spec.Template.Spec
		spec.Containers = []corev1.Container{container("main", list("cpu", one(g, "100m", "500m"), "memory", "64Mi"))}
		if i == 0 && g.likely(30) {
			spec.Containers[0].Ports = []corev1.ContainerPort{
				{ContainerPort: 8080, HostPort: 8080, Protocol: corev1.ProtocolTCP},
			}
		}
		switch g.IntN(4) {
		case 0:
			spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		case 1:
			spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}
		switch g.IntN(4) {
		case 0:
			spec.NodeSelector = map[string]string{corev1.LabelArchStable: one(g, "amd64", "arm64")}
		case 1:
			spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
		}
		g.result.Daemons = append(g.result.Daemons, set)
	}
}

func container(name string, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Image: "app", Resources: corev1.ResourceRequirements{Requests: requests}}
}

// list makes a resource list of names and quantities.
func list(pairs ...string) corev1.ResourceList {
	result := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		result[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return result
}

// maxDraws bounds how often a workload is redrawn because the API would refuse its pods.
const maxDraws = 50

// workload adds pods of one kind. Some of them may run already; the others wait.
func (g *generator) workload(i int) {
	for range maxDraws {
		template := g.template(i)
		template.Name = "probe"
		if _, err := admit(context.Background(), template); err != nil {
			continue
		}
		for n := range one(g, 1, 1, 2, 3, 4, 6, 9) {
			pod := template.DeepCopy()
			pod.ObjectMeta = g.meta(template.Namespace, fmt.Sprintf("w%d-%d", i, n))
			pod.Labels = template.Labels
			g.place(pod)
			g.result.Pods = append(g.result.Pods, pod)
		}
		return
	}
}

// place makes some pods run already, if there are nodes; the others wait.
func (g *generator) place(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "w", UID: "w"}}
	var nodes []string
	for _, m := range g.result.Machines {
		if m.Node != nil {
			nodes = append(nodes, m.name())
		}
	}
	if len(nodes) > 0 && g.likely(35) {
		pod.Spec.NodeName = one(g, nodes...)
		pod.Status.Phase = corev1.PodRunning
		if g.uses("terminating") && g.likely(30) {
			now := metav1.Unix(1_700_000_000, 0)
			pod.DeletionTimestamp = &now
		}
		return
	}
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
}
