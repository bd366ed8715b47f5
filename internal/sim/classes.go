package sim

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file changes the node class in worlds with EC2, as users and their cloud do.

const verbNodeClass = "node-class"

// classVerbs returns the script lines about the node class.
func classVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbNodeClass: (*World).changeClass}
}

// changeClass changes the node class: other tags, other subnets, or a newer image that it selects. In other clouds it
// does nothing.
func (w *World) changeClass(a arguments) error {
	if w.account == nil {
		return nil
	}
	if slices.Contains(a, "image") {
		w.account.NewImage()
	}
	if which, stated := a.value("subnets"); stated {
		terms := w.account.SelectSubnets(which)
		if len(terms) == 0 {
			return fmt.Errorf("subnets is %q: want all, none, zone-a or zone-b", which)
		}
		w.editClass(func(spec *awsv1.EC2NodeClassSpec) { spec.SubnetSelectorTerms = terms })
	}
	if text, stated := a.value("tags"); stated {
		w.editClass(func(spec *awsv1.EC2NodeClassSpec) { spec.Tags = map[string]string{"team": text} })
	}
	return nil
}

func (w *World) editClass(edit func(*awsv1.EC2NodeClassSpec)) {
	change(w, &awsv1.EC2NodeClass{}, client.ObjectKey{Name: className}, apiserver.Main,
		func(c *awsv1.EC2NodeClass) { edit(&c.Spec) })
}

// mendClass makes the node class select all subnets again.
func (w *World) mendClass() {
	if w.account != nil {
		w.editClass(func(spec *awsv1.EC2NodeClassSpec) { spec.SubnetSelectorTerms = w.account.SelectSubnets("all") })
	}
}

// overlooked finds a claim whose machine has run an older image than the class selects for an hour, and that is not
// drifted (D-06).
func (w *World) overlooked() string {
	if w.account == nil {
		return ""
	}
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		m, pool := w.checks.machines[string(claim.UID)], w.poolOf(claim)
		if m != nil && m.ImageID != w.account.Newest() && pool != nil && !isOther(pool) && !isOther(claim) &&
			!condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted) {
			problem = fmt.Sprintf("claim %s runs image %s, its class selects %s, and it is not drifted", claim.Name,
				m.ImageID, w.account.Newest())
		}
	})
	return problem
}

// classes changes the node class in some scripts.
func (g *generator) classes(d dice) {
	if !d.chance(0.4) {
		return
	}
	for range 1 + d.n(3) {
		at := d.between(20*time.Second, g.script.Heal-time.Second)
		switch how := of(&d, "image", "tags", "none", "zone-a", "zone-b"); how {
		case "image":
			g.add(at, verbNodeClass, how)
		case "tags":
			g.add(at, verbNodeClass, "tags="+of(&d, "a", "b"))
		default:
			g.add(at, verbNodeClass, "subnets="+how)
			if d.chance(0.6) {
				g.add(at+d.between(time.Second, 4*time.Minute), verbNodeClass, "subnets=all")
			}
		}
	}
}
