package operator

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// In some worlds the operator takes its settings from the HostedControlPlane, which may pause it.

// hostedSettings are what a HostedControlPlane says.
type hostedSettings struct {
	pausedUntil string
	tag         string // the value of a resource tag; "" for no tag
	deleting    bool
}

func (h hostedSettings) object() unstructured.Unstructured {
	plane := hostedControlPlane("one", "infra")
	plane.SetAnnotations(map[string]string{"hypershift.openshift.io/aws-karpenter-default-instance-profile": "nodes"})
	if h.deleting {
		plane.SetDeletionTimestamp(&metav1.Time{Time: began})
	}
	spec := plane.Object["spec"].(map[string]any)
	spec["autoNode"] = map[string]any{"provisionerConfig": map[string]any{"name": "Karpenter",
		"karpenter": map[string]any{"platform": "AWS"}}}
	spec["pausedUntil"] = h.pausedUntil
	if h.tag != "" {
		spec["platform"] = map[string]any{"aws": map[string]any{
			"resourceTags": []any{map[string]any{"key": "team", "value": h.tag}}}}
	}
	return *plane
}

// followHosted makes the process follow the HostedControlPlane.
func (p *process) followHosted(given Config) {
	p.hosted = &hostedFeed{board: p.deps.board, given: given.given(), changed: p.deps.hostedChanged,
		log: logr.Discard()}
	p.readHosted()
}

func (p *process) readHosted() {
	if p.dead || p.hosted == nil {
		return
	}
	var planes []unstructured.Unstructured
	var err error
	if w := p.world; w.denied == nil {
		planes = append(planes, w.settings.object())
	} else {
		err = errors.New("the management cluster does not answer")
	}
	p.hosted.take(context.Background(), planes, err)
	p.world.after(rereadAfter, p.readHosted)
}

// changeHosted changes the HostedControlPlane. The processes hear of it later.
func (w *world) changeHosted(change func(*hostedSettings)) {
	if !w.fromHosted {
		return
	}
	change(&w.settings)
	w.tell("the HostedControlPlane says %+v", w.settings)
	for _, p := range []*process{w.process, w.before} {
		settings := w.settings
		w.after(w.lag(), func() {
			if !p.dead && p.hosted != nil && settings == w.settings {
				p.hosted.take(context.Background(), []unstructured.Unstructured{settings.object()}, nil)
			}
		})
	}
}

func (w *world) pause() {
	until := pick(w, "true", w.now.Add(w.between(0, 2*time.Minute)).Format(time.RFC3339))
	w.changeHosted(func(h *hostedSettings) { h.pausedUntil = until })
	w.after(w.between(0, 3*time.Minute), w.goOn)
}

func (w *world) goOn() { w.changeHosted(func(h *hostedSettings) { h.pausedUntil = "" }) }

func (w *world) retag() {
	value := pick(w, "", "a", "b")
	w.changeHosted(func(h *hostedSettings) { h.tag = value })
}

// checkPause checks that a step that begins in a pause writes nothing in the guest. Those that began before may end.
func (p *process) checkPause(call apiserver.Call) {
	if p.beganPaused && p.deps.board.Paused(p.world.now) {
		p.world.fail("%s %s %s in a pause", call.Verb, serve.KindOf(call.Object), call.Key.Name)
	}
}

// dismantle deletes the hosted cluster: its pools go, so that their machines do (U8).
func (w *world) dismantle() {
	w.healed = false
	w.changeHosted(func(h *hostedSettings) { h.deleting = true })
	w.run(time.Minute)
	w.healed = true
	w.run(15 * time.Minute)
	pools := w.process.deps.kinds[0]
	for _, like := range []client.Object{pools.NewWrapper(), pools.NewProduct()} {
		w.guest.All(like, func(o client.Object) {
			w.fail("%s %s stays, though the hosted cluster is being deleted", serve.KindOf(like), o.GetName())
		})
	}
}
