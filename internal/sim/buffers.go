package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file simulates CapacityBuffers (K-37 to K-40). Users create, resize and delete them. At the end the room is
// there, or a limit explains why not, and no node is kept beyond that. Scripts without a buffer do not serve the kind.

// bufferVerbs returns the script lines about buffers.
func bufferVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"buffer": (*World).putBuffer,
		"delete-buffer": (*World).deleteBuffer}
}

// putBuffer creates or changes a CapacityBuffer and its PodTemplate: buffer NAME replicas=N cpu=AMOUNT.
func (w *World) putBuffer(a arguments) error {
	text, _ := a.value("cpu")
	cpu, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("cpu is %q: want a quantity", text)
	}
	key := client.ObjectKey{Namespace: metaNamespace, Name: a.first()}
	var template corev1.PodTemplateSpec
	template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}}}}
	replicas := int32(a.number("replicas", 1))
	spec := autoscalingv1beta1.CapacityBufferSpec{
		PodTemplateRef: &autoscalingv1beta1.LocalObjectRef{Name: key.Name}, Replicas: &replicas,
	}
	about := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if w.server.Peek(&autoscalingv1beta1.CapacityBuffer{}, key) == nil {
		if w.server.Peek(&corev1.PodTemplate{}, key) == nil {
			if err := w.server.Create(&corev1.PodTemplate{ObjectMeta: about, Template: template}); err != nil {
				return err
			}
		}
		return w.server.Create(&autoscalingv1beta1.CapacityBuffer{ObjectMeta: about, Spec: spec})
	}
	change(w, &corev1.PodTemplate{}, key, apiserver.Main, func(t *corev1.PodTemplate) { t.Template = template })
	change(w, &autoscalingv1beta1.CapacityBuffer{}, key, apiserver.Main, func(b *autoscalingv1beta1.CapacityBuffer) {
		b.Spec = spec
	})
	return nil
}

// deleteBuffer deletes a CapacityBuffer: delete-buffer NAME.
func (w *World) deleteBuffer(a arguments) error {
	key := client.ObjectKey{Namespace: metaNamespace, Name: a.first()}
	if w.server.Peek(&autoscalingv1beta1.CapacityBuffer{}, key) == nil {
		return nil
	}
	return w.server.Delete(&autoscalingv1beta1.CapacityBuffer{}, key, apiserver.DeleteOptions{})
}

// hasBuffers reports whether the script has any buffer.
func (s *Script) hasBuffers() bool {
	for _, action := range s.Actions {
		if action.Verb == "buffer" {
			return true
		}
	}
	return false
}

// buffers adds CapacityBuffers to some scripts. It has its own dice, so that the rest of the scripts does not change.
func (g *generator) buffers() {
	d := newDice(g.script.Seed, "buffers")
	if !d.chance(0.3) {
		return
	}
	at := func() time.Duration { return d.between(5*time.Second, g.script.Heal-time.Second) }
	for i := range 1 + d.n(2) {
		name := fmt.Sprintf("room-%d", i)
		size := func() []string {
			return []string{name, fmt.Sprintf("replicas=%d", d.n(6)), "cpu=" + of(&d, "100m", "500m", "900m")}
		}
		g.add(at(), "buffer", size()...)
		for range d.n(3) {
			g.add(at(), "buffer", size()...)
		}
		if d.chance(0.3) {
			g.add(at(), "delete-buffer", name)
		}
	}
}

// roomAsked returns for how many pods all buffers request room.
func (w *World) roomAsked() (pods int) {
	w.server.All(&autoscalingv1beta1.CapacityBuffer{}, func(o client.Object) {
		pods += int(*o.(*autoscalingv1beta1.CapacityBuffer).Spec.Replicas)
	})
	return pods
}

// roomMissing finds a buffer that has no condition, that says there is room where there is none, or that lacks room
// although a pool could have another node.
func (w *World) roomMissing() string {
	problem := ""
	free, all, together := w.freeCores(), int64(0), int64(0)
	for _, left := range free {
		all += max(0, left)
	}
	w.server.All(&autoscalingv1beta1.CapacityBuffer{}, func(o client.Object) {
		b := o.(*autoscalingv1beta1.CapacityBuffer)
		c := meta.FindStatusCondition(b.Status.Conditions, autoscalingv1beta1.ConditionTypeProvisioning)
		replicas := int64(*b.Spec.Replicas)
		switch {
		case problem != "" || replicas == 0:
		case c == nil || c.ObservedGeneration != b.Generation:
			problem = fmt.Sprintf("CapacityBuffer %s does not say how it stands", b.Name)
		case c.Status == metav1.ConditionTrue:
			template := w.server.Peek(&corev1.PodTemplate{}, client.ObjectKeyFromObject(b)).(*corev1.PodTemplate)
			each := template.Template.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			have := int64(0) // if the buffer were alone
			for _, left := range free {
				have += max(0, left) / each
			}
			if together += replicas * each; have < replicas || together > all {
				problem = fmt.Sprintf("CapacityBuffer %s says that it has room for %d pods: there is room for %d, "+
					"and %dm cores are free for the %dm of all", b.Name, replicas, have, all, together)
			}
		case c.Reason != "LimitReached" && w.grows():
			problem = fmt.Sprintf("CapacityBuffer %s still lacks room: %s: %s", b.Name, c.Reason, c.Message)
		default:
			w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
				pool := o.(*karpenterv1.NodePool)
				if count, limit := w.count(pool.Name), nodeLimit(pool); w.room(pool) > 0 &&
					pool.Spec.Replicas == nil && !isOther(pool) {
					problem = fmt.Sprintf("CapacityBuffer %s says %s although NodePool %s has %d nodes of %d", b.Name,
						c.Message, pool.Name, count, limit)
				}
			})
		}
	})
	return problem
}

// grows reports whether some pool launches nodes for pods: users may have deleted all that do.
func (w *World) grows() bool {
	some := false
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		some = some || o.(*karpenterv1.NodePool).Spec.Replicas == nil && !isOther(o)
	})
	return some
}

// freeCores returns what pods leave free on each schedulable node, in millicores.
func (w *World) freeCores() map[string]int64 {
	free := map[string]int64{}
	w.server.All(&corev1.Node{}, func(o client.Object) {
		if node := o.(*corev1.Node); !node.Spec.Unschedulable && node.DeletionTimestamp == nil {
			free[node.Name] = node.Status.Allocatable.Cpu().MilliValue()
		}
	})
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		if _, known := free[pod.Spec.NodeName]; !known || translate.Finished(pod) {
			return
		}
		for _, container := range pod.Spec.Containers {
			free[pod.Spec.NodeName] -= container.Resources.Requests.Cpu().MilliValue()
		}
	})
	return free
}
