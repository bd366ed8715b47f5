package world

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// clock is a time that tests set by hand.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Unix(1_000_000, 0)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) store() *Store { return New(Config{Now: c.Now, PromiseTTL: time.Minute}) }

func meta(namespace, name, uid string, version int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid),
		ResourceVersion: strconv.Itoa(version)}
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func testPod(name, uid string, version int, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta("shop", name, uid, version)}
	pod.Labels = map[string]string{"app": "web"}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{
		{Name: "main", Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "500m", "memory", "1Gi")}},
	}
	if node == "" {
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}
	}
	return pod
}

func testNode(name, uid string, version int, providerID string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: meta("", name, uid, version)}
	node.Labels = map[string]string{"kubernetes.io/hostname": name}
	node.Spec.ProviderID = providerID
	node.Status.Allocatable = quantities("cpu", "4", "memory", "16Gi", "pods", "110")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func testClaim(name, uid string, version int, pool, providerID string, conditions ...string) *karpenterv1.NodeClaim {
	claim := &karpenterv1.NodeClaim{ObjectMeta: meta("", name, uid, version)}
	claim.Labels = map[string]string{karpenterv1.NodePoolLabelKey: pool}
	claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: "default"}
	claim.Spec.Resources.Requests = quantities("cpu", "1")
	if providerID != "" {
		claim.Status.ProviderID = providerID
		claim.Status.Capacity = quantities("cpu", "4", "memory", "16Gi")
		claim.Status.Allocatable = quantities("cpu", "4", "memory", "15Gi", "pods", "110")
	}
	for _, c := range conditions {
		claim.Status.Conditions = append(claim.Status.Conditions, karpenterv1.Condition{
			Type: c, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(5000, 0)),
		})
	}
	return claim
}

func testPool(name string, version int) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{ObjectMeta: meta("", name, "uid-of-"+name, version)}
	pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
		Kind: "KWOKNodeClass", Name: "default"}
	pool.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{Duration: new(30 * time.Second)}
	pool.Status.Conditions = []karpenterv1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	return pool
}

func testDaemon(name string, version int) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{ObjectMeta: meta("kube-system", name, "uid-of-"+name, version)}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "100m")}},
	}
	return set
}

func testClass() ClassRef {
	return ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
}

func testCatalog(price resources.Money) catalog.Catalog {
	return catalog.Catalog{Types: []catalog.Type{
		{Name: "small", Capacity: resources.Amounts{"cpu": 2000, "memory": 8 << 30, "pods": 110},
			Overhead:  resources.Amounts{"cpu": 100},
			Offerings: []catalog.Offering{{Zone: "a", CapacityType: "spot", Price: price, Available: true}}},
		{Name: "large", Capacity: resources.Amounts{"cpu": 8000, "memory": 32 << 30, "pods": 110},
			Overhead:  resources.Amounts{"cpu": 200},
			Labels:    requirement.NewSet(requirement.OneOf("kubernetes.io/arch", "amd64")),
			Offerings: []catalog.Offering{{Zone: "a", CapacityType: "spot", Price: 4 * price, Available: true}}},
	}}
}

// picture prints all of a snapshot but its version, in one spelling for equal contents: the components of vectors,
// whose order is that in which the store met them, are printed by name.
func picture(s *cluster.Snapshot) string {
	var b strings.Builder
	amounts := func(v resources.Vector) string {
		var parts []string
		for i, amount := range v {
			if amount != 0 {
				parts = append(parts, fmt.Sprintf("%s=%d", s.Names[i], amount))
			}
		}
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}
	pod := func(p *cluster.Pod) string {
		own := *p
		own.Shape = nil
		return fmt.Sprintf("%+v asks %s, fits %v %s, tolerates %v, labels %v", own, amounts(p.Shape.Requests),
			p.Shape.Alternatives, p.Shape.Blocked,
			p.Shape.Tolerations, p.Shape.Labels) + fmt.Sprintf(", spread %v", p.Shape.Spread)
	}
	for _, p := range s.Pools {
		own := *p
		own.Used.Capacity, own.Catalog = nil, nil
		fmt.Fprintf(&b, "pool %+v uses %s, catalogue %t\n", own, amounts(p.Used.Capacity), p.Catalog != nil)
		if p.Catalog != nil {
			for _, t := range p.Catalog.Types {
				fmt.Fprintf(&b, "  type %s has %s\n", t.Name, amounts(t.Allocatable))
			}
			for _, o := range p.Catalog.Offers {
				fmt.Fprintf(&b, "  offer of %s costs %s\n", p.Catalog.Types[o.Type].Name, o.Price)
			}
		}
	}
	for _, n := range s.Nodes {
		own := *n
		own.Pods, own.Used, own.Allocatable, own.Coming = nil, nil, nil, nil
		fmt.Fprintf(&b, "node %+v has %s, used %s\n", own, amounts(n.Allocatable), amounts(n.Used))
		for _, p := range n.Pods {
			fmt.Fprintf(&b, "  %s\n", pod(p))
		}
		for _, p := range n.Coming {
			fmt.Fprintf(&b, "  coming %s\n", pod(p))
		}
	}
	for _, p := range s.Pending {
		fmt.Fprintf(&b, "pending %s\n", pod(p))
	}
	for _, d := range s.Daemons {
		fmt.Fprintf(&b, "daemon %s asks %s\n", d.Name, amounts(d.Shape.Requests))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces)) {
		fmt.Fprintf(&b, "namespace %s %v\n", name, s.Namespaces[name])
	}
	return b.String()
}

// names lists the nodes of a snapshot, those on their way with a plus sign.
func names(s *cluster.Snapshot) string {
	var list []string
	for _, n := range s.Nodes {
		if n.Name == "" {
			list = append(list, "+"+n.Claim)
		} else if n.Claim != "" {
			list = append(list, n.Name+"/"+n.Claim)
		} else {
			list = append(list, n.Name)
		}
	}
	return strings.Join(list, " ")
}
