package e2e

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file draws cases for TestK42_ThePodsThatAreExpectedAreBound. In each, Joiner and kube-scheduler must say the
// same about a pod, whatever node the scheduler prefers. So the pods of a case are equal, or each may run on one node
// only. Their priorities differ, so that both take them in the same order.

// deviceCase is a case: what drivers publish for some nodes, and pods that ask for it.
type deviceCase struct {
	kind    string
	name    string
	nodes   []string
	objects []client.Object // before the pods
	pods    []*corev1.Pod   // the highest priority first
	// says are words in Joiner's message about each pod for which it finds no node.
	says []string
	// never is set when no pod of the case may run.
	never bool
}

// drawing is the memory while a case is drawn.
type drawing struct {
	*rand.Rand
	c *deviceCase
}

const mostPods = 5

// priorities returns the classes that cases use; no pod preempts another one.
func priorities() (list []client.Object) {
	never := corev1.PreemptNever
	for i := range mostPods {
		list = append(list,
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("order-%d", i)},
				Value: int32(1000 - i), PreemptionPolicy: &never})
	}
	return list
}

// drawCase draws a case for these nodes, which are those of a pool.
func drawCase(random *rand.Rand, number int, pool string, nodes []string) *deviceCase {
	d := drawing{random, &deviceCase{name: fmt.Sprintf("case-%d", number), nodes: nodes}}
	kinds := []string{"equal", "equal", "equal", "pinned", "pinned", "shared", "bad"}
	d.c.kind = kinds[number%len(kinds)]
	d.publish()
	switch d.c.kind {
	case "equal":
		d.template(d.c.name, d.claimSpec())
		for range 2 + d.IntN(mostPods-1) {
			d.pod(corev1.PodResourceClaim{Name: "devices", ResourceClaimTemplateName: &d.c.name})
		}
	case "pinned":
		for i := range 2 + d.IntN(mostPods-1) {
			name := fmt.Sprintf("%s-%d", d.c.name, i)
			d.template(name, d.claimSpec())
			pod := d.pod(corev1.PodResourceClaim{Name: "devices", ResourceClaimTemplateName: &name})
			pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodes[d.IntN(len(nodes))]}
		}
	case "shared":
		d.add(&resourcev1.ResourceClaim{ObjectMeta: named(d.c.name), Spec: resourcev1.ResourceClaimSpec{
			Devices: d.claimSpec(),
		}})
		for range 2 + d.IntN(2) {
			d.pod(corev1.PodResourceClaim{Name: "devices", ResourceClaimName: &d.c.name})
		}
	case "bad":
		d.bad()
	}
	for i, pod := range d.c.pods {
		pod.Spec.PriorityClassName = fmt.Sprintf("order-%d", i)
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": pool}
		}
	}
	return d.c
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func (d *drawing) add(o client.Object) { d.c.objects = append(d.c.objects, o) }

func (d *drawing) template(name string, devices resourcev1.DeviceClaim) {
	d.add(&resourcev1.ResourceClaimTemplate{ObjectMeta: named(name),
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: devices}}})
}

func (d *drawing) pod(claims ...corev1.PodResourceClaim) *corev1.Pod {
	second := int64(1)
	pod := &corev1.Pod{ObjectMeta: named(fmt.Sprintf("%s-pod-%d", d.c.name, len(d.c.pods))), Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &second, ResourceClaims: claims, Containers: []corev1.Container{{Name: "main",
			Image: "example.invalid/main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}}}}}
	pod.Labels = map[string]string{"case": d.c.name}
	d.c.pods = append(d.c.pods, pod)
	return pod
}

func (d *drawing) driver() string           { return d.c.name + ".example.com" }
func (d *drawing) class(kind string) string { return d.c.name + "-" + kind }

func (d *drawing) selector(format string, args ...any) resourcev1.DeviceSelector {
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(format, args...)}}
}

// publish draws what drivers publish: GPUs and NICs of each node, perhaps disks that several nodes can reach, and a
// class for each.
func (d *drawing) publish() {
	for _, kind := range []string{"gpu", "nic", "disk"} {
		d.add(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: d.class(kind)},
			Spec: resourcev1.DeviceClassSpec{
				Selectors: []resourcev1.DeviceSelector{
					d.selector("device.driver == %q && device.attributes[%q].kind == %q", d.driver(), d.driver(),
						kind)}}})
	}
	for _, node := range d.c.nodes {
		var list []resourcev1.Device
		for i := range d.IntN(5) {
			list = append(list, d.device(fmt.Sprintf("gpu-%d", i), "gpu"))
		}
		for i := range d.IntN(3) {
			list = append(list, d.device(fmt.Sprintf("nic-%d", i), "nic"))
		}
		d.slice(node, list, func(s *resourcev1.ResourceSliceSpec) { s.NodeName = &node })
	}
	if d.IntN(2) == 0 {
		reached := d.c.nodes[:1+d.IntN(len(d.c.nodes))]
		d.slice("disks", []resourcev1.Device{d.device("disk-0", "disk"), d.device("disk-1", "disk")},
			func(s *resourcev1.ResourceSliceSpec) {
				s.NodeSelector = &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: reached}}}}}
			})
	}
}

func (d *drawing) device(name, kind string) resourcev1.Device {
	model, numa := []string{"a", "b"}[d.IntN(2)], []string{"0", "1"}[d.IntN(2)]
	return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"kind": {StringValue: &kind}, "model": {StringValue: &model}, "numa": {StringValue: &numa}}}
}

// slice publishes devices as one pool.
func (d *drawing) slice(pool string, list []resourcev1.Device, where func(*resourcev1.ResourceSliceSpec)) {
	if len(list) == 0 {
		return
	}
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: d.c.name + "-" + pool},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: d.driver(), Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
			Devices: list}}
	where(&s.Spec)
	d.add(s)
}

// claimSpec draws what a claim asks for.
func (d *drawing) claimSpec() resourcev1.DeviceClaim {
	var claim resourcev1.DeviceClaim
	d.c.says = []string{"ResourceClaim default/" + d.c.name, "request ", "DeviceClass " + d.c.name + "-"}
	exactly := func(name, kind string, count int64, selectors ...resourcev1.DeviceSelector) {
		claim.Requests = append(claim.Requests,
			resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: d.class(kind), AllocationMode: resourcev1.DeviceAllocationModeExactCount,
				Count: count, Selectors: selectors}})
	}
	model := func() []resourcev1.DeviceSelector {
		which := []string{"a", "a", "b", "b", "c"}[d.IntN(5)] // there is no c
		return []resourcev1.DeviceSelector{d.selector("device.attributes[%q].model == %q", d.driver(), which)}
	}
	switch d.IntN(6) {
	case 0, 1:
		exactly("main", "gpu", 1+int64(d.IntN(3)))
	case 2:
		exactly("main", "gpu", 1+int64(d.IntN(2)), model()...)
	case 3:
		claim.Requests = []resourcev1.DeviceRequest{
			{Name: "main", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: d.class("gpu"),
				AllocationMode: resourcev1.DeviceAllocationModeAll}}}
	case 4:
		request := resourcev1.DeviceRequest{Name: "main"}
		for i, kind := range []string{"nic", "gpu"} {
			request.FirstAvailable = append(request.FirstAvailable,
				resourcev1.DeviceSubRequest{Name: fmt.Sprintf("way-%d", i),
					DeviceClassName: d.class(kind), AllocationMode: resourcev1.DeviceAllocationModeExactCount,
					Count: 1, Selectors: model()})
		}
		claim.Requests = []resourcev1.DeviceRequest{request}
	default:
		exactly("main", "disk", 1)
	}
	if d.IntN(3) == 0 {
		exactly("second", "nic", 1)
	}
	if d.IntN(3) == 0 {
		numa := resourcev1.FullyQualifiedName(d.driver() + "/numa")
		claim.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &numa}}
	}
	return claim
}

// bad draws a pod whose claim is wrong.
func (d *drawing) bad() {
	d.c.never = true
	request := resourcev1.DeviceRequest{Name: "main",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: d.class("gpu"),
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: named(d.c.name), Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}}
	exact := claim.Spec.Devices.Requests[0].Exactly
	switch d.IntN(4) {
	case 0:
		d.c.says = []string{"ResourceClaim default/" + d.c.name, "(spec.resourceClaims devices)", "does not exist"}
		claim = nil
	case 1:
		exact.DeviceClassName = d.class("none")
		d.c.says = []string{"request main of ResourceClaim default/" + d.c.name, d.class("none"), "does not exist"}
	case 2: // the class lets the device without attributes through, and it is the only one
		all := true
		d.slice("odd", []resourcev1.Device{{Name: "odd"}}, func(s *resourcev1.ResourceSliceSpec) { s.AllNodes = &all })
		anything := d.class("anything")
		d.add(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: anything}, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{
				d.selector("device.driver == %q && !(%q in device.attributes)", d.driver(), d.driver())}}})
		exact.DeviceClassName = anything
		exact.Selectors = []resourcev1.DeviceSelector{d.selector("device.attributes[%q].model == 'a'", d.driver())}
		d.c.says = []string{"request main of ResourceClaim default/" + d.c.name, anything, "fails on device"}
	default:
		template := d.c.name
		d.c.says = []string{"is not made yet from ResourceClaimTemplate default/" + template}
		d.pod(corev1.PodResourceClaim{Name: "devices", ResourceClaimTemplateName: &template})
		return
	}
	if claim != nil {
		d.add(claim)
	}
	d.pod(corev1.PodResourceClaim{Name: "devices", ResourceClaimName: &d.c.name})
}
