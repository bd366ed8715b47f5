package foretell_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/foretell"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// everything owns all there is.
type everything struct{}

func (everything) OwnsPool(*karpenterv1.NodePool) bool   { return true }
func (everything) OwnsClaim(*karpenterv1.NodeClaim) bool { return true }
func (everything) OwnsNode(*corev1.Node, *karpenterv1.NodeClaim, *karpenterv1.NodePool) bool {
	return true
}

var classRef = &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: "default"}

// offers are types of 4 cores, by name, on demand in zone a for a dollar.
func offers(names ...string) catalog.Catalog {
	c := catalog.Catalog{WellKnown: map[requirement.Key]bool{catalog.LabelInstanceType: true, catalog.LabelZone: true,
		catalog.LabelCapacityType: true}}
	for _, name := range names {
		c.Types = append(c.Types, catalog.Type{Name: name, Capacity: resources.Amounts{"cpu": 4000, "memory": 16 << 30,
			"pods": 20},
			Labels: requirement.NewSet(requirement.OneOf("kubernetes.io/arch", "amd64")),
			Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.OnDemand, Price: resources.Dollar,
				Available: true}}})
	}
	return c
}

func pool() *karpenterv1.NodePool {
	p := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "p"}}
	p.Spec.Template.Spec.NodeClassRef = classRef
	soon := 30 * time.Second
	p.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{Duration: &soon}
	condition.Set(&p.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeReady, "", ""), now())
	return p
}

func class() *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "c"}}
}

func now() time.Time { return time.Unix(1_800_000_000, 0) }

// pod asks for 3 cores; nobody makes it again unless it has an owner.
func pod(name string, owned bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("pod-" + name)}}
	p.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("3")}}}}
	if owned {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "r",
			Controller: &yes}}
	}
	return foretell.Waiting(p)
}

func staged(t *testing.T, c catalog.Catalog, objects ...client.Object) *foretell.Stage {
	t.Helper()
	s, err := foretell.New(foretell.Input{Objects: objects, Catalogue: c, Fleet: everything{}, Now: now(),
		Classes: []world.ClassRef{{Group: classRef.Group, Kind: classRef.Kind, Name: classRef.Name}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func settled(t *testing.T, c catalog.Catalog, objects ...client.Object) *foretell.Stage {
	t.Helper()
	s := staged(t, c, objects...)
	s.Plan()
	if s.Settle(); !s.Record().Quiet {
		t.Fatalf("not at rest: %+v", s.Record())
	}
	return s
}

// edited are the objects of a stage with one of them changed, by type.
func edited[O client.Object](s *foretell.Stage, change func(O)) []client.Object {
	var list []client.Object
	for _, o := range s.Objects() {
		own := o.DeepCopyObject().(client.Object)
		if found, is := own.(O); is {
			change(found)
		}
		list = append(list, own)
	}
	return list
}

// TestU03_DriftIsForetold: the template's hash, the requirements, the hash of the node class, a type that is gone; and
// nothing where nothing has changed.
func TestU03_DriftIsForetold(t *testing.T) {
	t.Parallel()
	base := settled(t, offers("big", "other"), pool(), class(), pod("a", true))
	if n := len(base.Snapshot().Nodes); n != 1 {
		t.Fatalf("%d nodes, want one", n)
	}
	for name, c := range map[string]struct {
		objects []client.Object
		types   []string
		want    string
	}{
		"nothing": {base.Objects(), []string{"big", "other"}, ""},
		"template": {edited(base, func(p *karpenterv1.NodePool) {
			p.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "shop"}
		}), []string{"big", "other"}, "the template of NodePool web has changed"},
		"requirements": {edited(base, func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{{
				Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"other"}}}
		}), []string{"big", "other"}, "node.kubernetes.io/instance-type=big: NodePool web asks for"},
		"class": {edited(base, func(c *awsv1.EC2NodeClass) { c.Spec.Role = new("another") }), []string{"big", "other"},
			"the specification of EC2NodeClass default has changed"},
		"type": {base.Objects(), []string{"other"}, "the instance type big is not in the catalogue any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := settled(t, offers(c.types...), c.objects...).Record()
			switch {
			case c.want == "" && len(record.Gone)+len(record.Launched) > 0:
				t.Errorf("%+v", record)
			case c.want == "":
			case len(record.Gone) != 1 || len(record.Launched) != 1 || record.Gone[0].Reason != plan.Drifted ||
				!strings.Contains(record.Gone[0].Drift, c.want) || len(record.Gone[0].Pods) != 1:
				t.Errorf("%+v; want one node replaced since %q", record, c.want)
			}
		})
	}
}

// TestU03_RestIsWaitedFor: a node that has just replaced others is replaced by a cheaper one once it has rested
// (D-15).
func TestU03_RestIsWaitedFor(t *testing.T) {
	t.Parallel()
	base := settled(t, offers("big"), pool(), class(), pod("a", true))
	cheaper := offers("big", "new")
	cheaper.Types[1].Offerings[0].Price /= 2
	record := settled(t, cheaper, edited(base, func(c *karpenterv1.NodeClaim) {
		c.CreationTimestamp.Time = now()
		c.Annotations[karpenterv1.ReplacedAnnotationKey] = "gone"
	})...).Record()
	if len(record.Launched) != 1 || len(record.Gone) != 1 || record.Gone[0].Reason != plan.Underutilized {
		t.Errorf("%+v; want the node replaced by a cheaper one", record)
	}
}

// TestK49_ARebootingNodeIsForetoldToStay: it is up again, with its pods; nothing replaces it.
func TestK49_ARebootingNodeIsForetoldToStay(t *testing.T) {
	t.Parallel()
	base := settled(t, offers("big"), pool(), class(), pod("a", true))
	s := settled(t, offers("big"), edited(base, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints,
			corev1.Taint{Key: karpenterv1.RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule})
	})...)
	if record := s.Record(); len(record.Gone)+len(record.Launched) > 0 {
		t.Errorf("%+v", record)
	}
	if nodes := s.Snapshot().Nodes; len(nodes) != 1 || nodes[0].Disrupting {
		t.Errorf("%+v", nodes)
	}
}

// TestU03_WhatNobodyMakesAgainIsLost: a pod without a controller is lost with its node, and the node launched for it
// is empty. A pod with one moves.
func TestU03_WhatNobodyMakesAgainIsLost(t *testing.T) {
	t.Parallel()
	base := settled(t, offers("big"), pool(), class(), pod("a", true), pod("b", false))
	s := settled(t, offers("big"), edited(base, func(p *karpenterv1.NodePool) {
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "shop"}
	})...)
	record := s.Record()
	if len(record.Gone) != 3 || record.Gone[2].Reason != plan.Empty || len(record.Lost) != 1 ||
		record.Lost[0].Name != "b" {
		t.Errorf("%+v", record)
	}
	for _, o := range s.Objects() {
		if p, isPod := o.(*corev1.Pod); isPod && p.Spec.NodeName == "" {
			t.Errorf("pod %s waits", p.Name)
		}
	}
}

// TestU03_NothingGivenIsChanged: the objects are copied.
func TestU03_NothingGivenIsChanged(t *testing.T) {
	t.Parallel()
	given := []client.Object{pool(), class(), pod("a", true)}
	settled(t, offers("big"), given...)
	for i, want := range []client.Object{pool(), class(), pod("a", true)} {
		if given[i].GetResourceVersion() != want.GetResourceVersion() || given[i].GetUID() != want.GetUID() {
			t.Errorf("%T was changed", want)
		}
	}
	if p := given[2].(*corev1.Pod); p.Spec.NodeName != "" {
		t.Errorf("the pod was bound to %s", p.Spec.NodeName)
	}
}

// TestU03_NewNodesAreNew: a node removed in a play differs by name from those that come, even if slots reuse names.
func TestU03_NewNodesAreNew(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]karpenterv1.Limits{
		"names": nil, "slots": {"nodes": resource.MustParse("4")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limited := pool()
			limited.Spec.HardLimits = limits
			base := settled(t, offers("big"), limited, class(), pod("a", true), pod("b", true), pod("c", true))
			record := settled(t, offers("big"), edited(base, func(p *karpenterv1.NodePool) {
				p.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "shop"}
			})...).Record()
			nodes, claims := map[string]bool{}, map[types.UID]bool{}
			for _, gone := range record.Gone {
				nodes[gone.Node], claims[gone.UID] = true, true
			}
			if len(nodes) != 3 || len(claims) != 3 {
				t.Fatalf("%d nodes and %d claims went, want 3", len(nodes), len(claims))
			}
			for _, l := range record.Launched {
				if nodes[l.Node] || claims[l.UID] {
					t.Errorf("%s comes, and one of that name goes", l.Node)
				}
			}
		})
	}
}

// TestU03_AReservationIsUsedOnce: a reservation for one machine is not used for two in one play.
func TestU03_AReservationIsUsedOnce(t *testing.T) {
	t.Parallel()
	c := offers("big")
	c.Types[0].Offerings = append(c.Types[0].Offerings, catalog.Offering{Zone: "a", CapacityType: catalog.Reserved,
		Price:     1,
		Available: true, Reservation: 1})
	s := settled(t, c, pool(), class(), pod("a", true), pod("b", true))
	count := map[string]int{}
	for _, node := range s.Snapshot().Nodes {
		count[node.Labels[string(catalog.LabelCapacityType)]]++
	}
	if count[catalog.Reserved] != 1 || count[catalog.OnDemand] != 1 {
		t.Errorf("nodes %v, want one reserved and one on demand", count)
	}
}
