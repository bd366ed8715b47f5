package interruption_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/interruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// other is a cloud of another node class.
type other struct {
	*cloud
	kind string
}

func (o other) NodeClass() schema.GroupKind { return schema.GroupKind{Group: "other", Kind: o.kind} }

// heard remembers who was told, and how, and the Nodes with their UIDs.
type heard struct{ said, nodes []string }

func (h *heard) Event(about client.Object, kind event.Kind, reason, _ string) {
	name := "claim " + about.GetName()
	if _, node := about.(*corev1.Node); node {
		name = "node " + about.GetName()
		h.nodes = append(h.nodes, about.GetName()+" "+string(about.GetUID()))
	}
	h.said = append(h.said, name+" "+string(kind)+" "+reason)
}

// planning remembers which node classes it was told of.
type planning struct {
	told    []string
	failure error
}

func (p *planning) SetCatalog(class world.ClassRef, _ catalog.Catalog) error {
	p.told = append(p.told, class.Name)
	return p.failure
}

// unreadable is a cloud whose catalogue cannot be read.
type unreadable struct{ *cloud }

func (unreadable) Catalog(context.Context, string) (catalog.Catalog, error) {
	return catalog.Catalog{}, errors.New("throttled")
}

// among sets the controller up with these clouds, and returns who is told what.
func (r *rig) among(p *planning, clouds ...provider.Provider) *heard {
	h, set := &heard{}, metrics.New(prometheus.NewRegistry())
	r.step = interruption.New(interruption.Config{
		Client: r.server, Fleet: fleet.New(clouds...), Catalogs: p, Events: h, Claims: set.Claims,
		Metrics: set.Interruptions, Now: controllertest.Start, Log: logr.Discard(),
	})
	return h
}

func (r *rig) change(t *testing.T, change func(claim *karpenterv1.NodeClaim)) {
	t.Helper()
	claim := r.claim(t)
	change(claim)
	status := claim.Status
	if err := r.server.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.Status = status
	if err := r.server.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// The earliest wish of all clouds decides when to ask again; a cloud without a wish does not count.
func TestTheSoonestCloudSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	const none, soon, late = 0, 3 * time.Second, 7 * time.Second
	for _, c := range []struct{ first, second, third, want time.Duration }{
		{late, soon, none, soon}, {soon, late, none, soon}, {late, none, soon, soon}, {none, late, soon, soon},
		{none, none,
			none, none},
	} {
		r := newRig(t)
		at := func(again time.Duration) *cloud { return &cloud{notices: provider.Notices{Again: again}} }
		r.among(&planning{}, at(c.first), other{at(c.second), "B"}, other{at(c.third), "C"})
		if again := r.again(t); again != c.want {
			t.Errorf("%s, %s, %s: again after %s, want %s", c.first, c.second, c.third, again, c.want)
		}
	}
}

// a cloud's notice is about its own machines. Claims of another cloud's classes or another program are not
// touched, even if they name the same machine.
func TestANoticeIsAboutItsOwnCloudsMachines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    string // of the claim's node class
		deleted bool
	}{"the cloud's own": {"A", true}, "another cloud's": {"B", false}, "another program's": {"C",
		false}, "nobody's": {"", false}} {
		r := newRig(t)
		r.change(t, func(claim *karpenterv1.NodeClaim) {
			claim.Spec.NodeClassRef.Group, claim.Spec.NodeClassRef.Kind = "other", c.kind
		})
		r.cloud.notices.List = []provider.Notice{interrupted()}
		r.among(&planning{}, other{r.cloud, "A"}, other{&cloud{}, "B"})
		again := r.again(t)
		if deleted := r.claim(t).DeletionTimestamp != nil; deleted != c.deleted || (again == 0) != c.deleted {
			t.Errorf("%s: deleted is %t, again after %s; want %t", name, deleted, again, c.deleted)
		}
	}
}

// P-43: planning learns at once what the cloud lacks. An unreadable catalogue does not count as empty.
func TestPlanningHearsWhatHasBecomeScarce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unread  bool
		failure error // of planning
		told    []string
	}{
		"told":       {false, nil, []string{"default"}},
		"not heard":  {false, errors.New("no such class"), []string{"default"}},
		"unreadable": {true, nil, nil},
	} {
		r, p := newRig(t, interrupted()), &planning{failure: c.failure}
		cloud := provider.Provider(r.cloud)
		if c.unread {
			cloud = unreadable{r.cloud}
		}
		r.among(p, cloud)
		if r.again(t); !slices.Equal(p.told, c.told) || r.claim(t).DeletionTimestamp == nil {
			t.Errorf("%s: told of %v, want %v, and the machine drained whatever comes of it", name, p.told, c.told)
		}
	}
}

// U-09: notices that end a machine are warnings, others are not. A machine without a node has no event on a node.
func TestWhoIsToldOfANotice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		notice   provider.NoticeKind
		nodeless bool
		want     []string
	}{
		"it ends": {provider.InstanceStopping, false, []string{
			"claim c1 Warning InstanceStopping", "node n1 Warning InstanceStopping",
			"claim c1 Warning TerminatingOnInterruption"}},
		"it may end": {provider.RebalanceRecommended, false, []string{
			"claim c1 Normal SpotRebalanceRecommendation", "node n1 Normal SpotRebalanceRecommendation"}},
		"it has no node": {provider.RebalanceRecommended, true,
			[]string{"claim c1 Normal SpotRebalanceRecommendation"}},
	} {
		r := newRig(t, provider.Notice{ID: "1", Kind: c.notice, ProviderID: "fake://1"})
		if c.nodeless {
			r.change(t, func(claim *karpenterv1.NodeClaim) { claim.Status.NodeName = "" })
		}
		h := r.among(&planning{}, r.cloud)
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || !slices.Equal(h.said, c.want) {
			t.Errorf("%s: said %q, error %v; want %q", name, h.said, err, c.want)
		}
	}
}
