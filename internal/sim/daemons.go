package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file simulates DaemonSets and their controller, and the demands of a pod on its node: tolerations, labels, a
// certain node, host ports.

// daemonVerbs returns the script lines about daemons and about admission of pods.
func daemonVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{
		"daemons": (*World).makeDaemons, "limit-range": (*World).makeLimitRange,
		"spoil": (*World).spoilNodes, "mend": (*World).mendNodes,
	}
}

// resourcesOf parses cpu= and mem= as requests, cpu-limit= and mem-limit= as limits.
func resourcesOf(a arguments) (corev1.ResourceRequirements, error) {
	var r corev1.ResourceRequirements
	for key, at := range map[string]struct {
		list *corev1.ResourceList
		name corev1.ResourceName
	}{
		"cpu": {&r.Requests, corev1.ResourceCPU}, "mem": {&r.Requests, corev1.ResourceMemory},
		"cpu-limit": {&r.Limits, corev1.ResourceCPU}, "mem-limit": {&r.Limits, corev1.ResourceMemory},
	} {
		text, stated := a.value(key)
		if !stated {
			continue
		}
		amount, err := resource.ParseQuantity(text)
		if err != nil {
			return r, fmt.Errorf("%s is %q: want a quantity", key, text)
		}
		if *at.list == nil {
			*at.list = corev1.ResourceList{}
		}
		(*at.list)[at.name] = amount
	}
	return r, nil
}

// wants adds the demands of pods on their node: need=LABEL=VALUE and port=N.
func wants(a arguments, spec *corev1.PodSpec) {
	if need, stated := a.value("need"); stated {
		key, value, _ := strings.Cut(need, "=")
		spec.NodeSelector = map[string]string{key: value}
	}
	if port := a.number("port", 0); port > 0 {
		own := corev1.ContainerPort{ContainerPort: int32(port), HostPort: int32(port), Protocol: corev1.ProtocolTCP}
		spec.Containers[0].Ports = []corev1.ContainerPort{own}
	}
}

// makeDaemons creates a DaemonSet with its resources, wants and budget; the word all makes it tolerate every taint.
// injected= is the cpu request that a webhook gives its pods.
func (w *World) makeDaemons(a arguments) error {
	asked, err := resourcesOf(a)
	if err != nil {
		return err
	}
	labels := map[string]string{"daemon": a.first()}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metaNamespace, Name: a.first(), Annotations: map[string]string{
				appsv1.DeprecatedTemplateGeneration: "1",
			},
		},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers:                    []corev1.Container{{Name: "c", Image: "none", Resources: asked}},
				},
			},
		},
	}
	wants(a, &set.Spec.Template.Spec)
	if injected, stated := a.value("injected"); stated {
		amount, err := resource.ParseQuantity(injected)
		if err != nil {
			return fmt.Errorf("injected is %q: want a quantity", injected)
		}
		w.cluster.injected[set.Name] = amount
	}
	if slices.Contains(a, "all") {
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if spec, stated := budgetSpecOf(a); stated {
		spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		if err := w.server.Create(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: metaNamespace, Name: set.Name}, Spec: spec}); err != nil {
			return err
		}
	}
	return w.server.Create(set)
}

// makeLimitRange sets defaults for containers of the namespace: cpu=, mem=, cpu-limit= and mem-limit=.
func (w *World) makeLimitRange(a arguments) error {
	asked, err := resourcesOf(a)
	if err != nil {
		return err
	}
	return w.server.Create(&corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: metaNamespace, Name: a.first()},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: asked.Limits, DefaultRequest: asked.Requests,
		}}},
	})
}

// heardDaemons plans the DaemonSet controller's next run.
func (c *cluster) heardDaemons(e apiserver.Event) {
	switch object := e.Object.(type) {
	case *corev1.Pod:
		if !isDaemon(object) || e.Type != apiserver.Deleted {
			return
		}
	case *corev1.Node, *appsv1.DaemonSet:
	default:
		return
	}
	if c.world.server.Any(&appsv1.DaemonSet{}) {
		c.soon("daemons", 20*time.Millisecond, 400*time.Millisecond, c.runDaemons)
	}
}

// isDaemon reports whether a DaemonSet made the pod.
func isDaemon(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet"
	})
}

// runDaemons is the DaemonSet controller: one pod on each node on which the template may run, none elsewhere.
func (c *cluster) runDaemons() {
	have := map[string]*corev1.Pod{} // by set and node
	c.world.server.All(&corev1.Pod{}, func(o client.Object) {
		if pod := o.(*corev1.Pod); isDaemon(pod) {
			have[pod.OwnerReferences[0].Name+"/"+targetOf(pod)] = pod
		}
	})
	c.world.server.All(&appsv1.DaemonSet{}, func(o client.Object) {
		set := o.(*appsv1.DaemonSet)
		stands := map[string]bool{}
		c.world.server.All(&corev1.Node{}, func(o client.Object) {
			node, key := o.(*corev1.Node), set.Name+"/"+o.GetName()
			stands[key] = true
			template := daemonSpec(set, node.Name)
			start := (&room{node: node}).admits(&corev1.Pod{Spec: template})
			switch {
			case start && have[key] == nil:
				c.makeDaemon(set, template)
			case have[key] != nil && have[key].DeletionTimestamp == nil && !start && !mayStay(node, template):
				c.must(c.world.server.Delete(have[key], client.ObjectKeyFromObject(have[key]),
					apiserver.DeleteOptions{}))
			}
		})
		for _, key := range slices.Sorted(maps.Keys(have)) { // in a fixed order
			pod := have[key]
			if strings.HasPrefix(key, set.Name+"/") && !stands[key] && pod.Spec.NodeName == "" {
				c.remove(pod) // its node is gone
			}
		}
	})
}

// daemonSpec returns the template as the DaemonSet controller completes it for a node.
func daemonSpec(set *appsv1.DaemonSet, node string) corev1.PodSpec {
	spec := *set.Spec.Template.Spec.DeepCopy()
	for key, effect := range map[string]corev1.TaintEffect{
		corev1.TaintNodeNotReady:      corev1.TaintEffectNoExecute,
		corev1.TaintNodeUnreachable:   corev1.TaintEffectNoExecute,
		corev1.TaintNodeUnschedulable: corev1.TaintEffectNoSchedule,
	} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
			Effect: effect})
	}
	slices.SortFunc(spec.Tolerations, func(a, b corev1.Toleration) int { return strings.Compare(a.Key, b.Key) })
	only := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn,
		Values: []string{node}}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{only}}},
		},
	}}
	return spec
}

// mayStay reports whether a running daemon may stay on the node: NoSchedule taints do not evict it.
func mayStay(node *corev1.Node, spec corev1.PodSpec) bool {
	kept := node.DeepCopy()
	kept.Spec.Taints = slices.DeleteFunc(kept.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectNoExecute
	})
	return (&room{node: kept}).admits(&corev1.Pod{Spec: spec})
}

func (c *cluster) makeDaemon(set *appsv1.DaemonSet, spec corev1.PodSpec) {
	c.pods++
	yes, generation := true, set.Annotations[appsv1.DeprecatedTemplateGeneration]
	if amount, injects := c.injected[set.Name]; injects {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: amount}
	}
	c.must(c.world.server.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metaNamespace, Name: fmt.Sprintf("%s-%03d", set.Name, c.pods),
			Labels: map[string]string{"daemon": set.Name, "pod-template-generation": generation},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: &yes,
			}},
		},
		Spec: spec,
	}))
}

// targetOf returns the name of the node that a pod requires, "" for none.
func targetOf(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			return field.Values[0]
		}
	}
	return ""
}

// admits is kube-scheduler's filters for a pod and a node, apart from free resources.
func (r *room) admits(pod *corev1.Pod) bool {
	if target := targetOf(pod); target != "" && target != r.node.Name {
		return false
	}
	for key, value := range pod.Spec.NodeSelector {
		if r.node.Labels[key] != value {
			return false
		}
	}
	for _, taint := range r.node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(pod.Spec.Tolerations,
				func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return !slices.ContainsFunc(hostPortsOf(pod), func(port int32) bool { return slices.Contains(r.ports, port) })
}

// tolerates handles tolerations of a key, or of everything: simulated pods have no others.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return t.Operator == corev1.TolerationOpExists && (t.Key == "" || t.Key == taint.Key) &&
		(t.Effect == "" || t.Effect == taint.Effect)
}

func hostPortsOf(pod *corev1.Pod) []int32 {
	var ports []int32
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.HostPort > 0 {
			ports = append(ports, port.HostPort)
		}
	}
	return ports
}

// spoiled is the taint of a user's controller that Joiner does not know.
const spoiled = "example.com/spoiled"

// spoilNodes starts a user's controller that taints each new node, or a webhook that refuses bindings.
func (w *World) spoilNodes(a arguments) error {
	switch a.first() {
	case "all":
		w.cluster.spoils = true
	case "bindings":
		w.cluster.refuses = true
	default:
		return fmt.Errorf("spoil %q: want all or bindings", a.first())
	}
	return nil
}

// mendNodes ends both.
func (w *World) mendNodes(arguments) error {
	w.cluster.spoils, w.cluster.refuses = false, false
	w.server.All(&corev1.Node{}, func(o client.Object) {
		change(w, &corev1.Node{}, client.ObjectKeyFromObject(o), apiserver.Main, func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == spoiled })
		})
	})
	return nil
}

// heardNode lets the user's controller react to a ready node.
func (c *cluster) heardNode(node *corev1.Node) {
	tainted := slices.ContainsFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == spoiled || t.Key == corev1.TaintNodeNotReady })
	if !c.spoils || tainted || strings.HasPrefix(node.Name, foreignPrefix) {
		return
	}
	c.soon("spoil "+node.Name, time.Millisecond, 50*time.Millisecond, func() {
		change(c.world, &corev1.Node{}, client.ObjectKey{Name: node.Name}, apiserver.Main, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: spoiled, Effect: corev1.TaintEffectNoSchedule})
		})
	})
}

// toleratesAll reports whether a drain ignores the pod, since it would come back.
func toleratesAll(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations,
		func(t corev1.Toleration) bool { return t.Key == "" && t.Operator == corev1.TolerationOpExists })
}
