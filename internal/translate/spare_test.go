package translate_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// fill sets a field and everything below it to some value. Recursive types are filled a few levels deep.
func fill(v reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("3")))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(1_700_000_000, 0)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth-1)
			}
		}
	}
}

// B-22: whatever further field a pod has, planning sees the same in its stripped copy: as a pod, and as the template
// of a DaemonSet.
func TestB22_WhatIsSparedChangesNoPlan(t *testing.T) {
	t.Parallel()
	ordinary := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u",
				Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{
				NodeName:       "n",
				InitContainers: []corev1.Container{{Name: "first"}},
				Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main"},
			},
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "first"}}},
		}
	}
	parts := map[string]func(*corev1.Pod) reflect.Value{
		"spec": func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(&p.Spec).Elem() },
		"spec.containers": func(p *corev1.Pod) reflect.Value {
			return reflect.ValueOf(&p.Spec.Containers[0]).Elem()
		},
		"spec.initContainers": func(p *corev1.Pod) reflect.Value {
			return reflect.ValueOf(&p.Spec.InitContainers[0]).Elem()
		},
		"status": func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(&p.Status).Elem() },
		"status.containerStatuses": func(p *corev1.Pod) reflect.Value {
			return reflect.ValueOf(&p.Status.ContainerStatuses[0]).Elem()
		},
		"status.initContainerStatuses": func(p *corev1.Pod) reflect.Value {
			return reflect.ValueOf(&p.Status.InitContainerStatuses[0]).Elem()
		},
		"metadata": func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(&p.ObjectMeta).Elem() },
	}
	spared := 0
	for part, of := range parts {
		for i := range of(ordinary()).NumField() {
			whole := ordinary()
			fill(of(whole).Field(i), 8)
			left, err := translate.Spare(whole.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			spare := left.(*corev1.Pod)
			if !reflect.DeepEqual(spare, whole) {
				spared++
			}
			if got, want := seen(spare), seen(whole); !reflect.DeepEqual(got, want) {
				t.Errorf("with %s.%s: planning sees\n%+v\nof what is kept, of the whole\n%+v",
					part, of(whole).Type().Field(i).Name, got, want)
			}
			if again, _ := translate.Spare(spare.DeepCopy()); !reflect.DeepEqual(again, spare) {
				t.Errorf("with %s.%s: a second time leaves out more", part, of(whole).Type().Field(i).Name)
			}
		}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"a volume of its own": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			}
		},
		"a resize": func(p *corev1.Pod) { resize(&p.Status.ContainerStatuses[0]) },
		"a resize of a sidecar": func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers[0].RestartPolicy = &always
			resize(&p.Status.InitContainerStatuses[0])
		},
		"a resize that cannot be": func(p *corev1.Pod) {
			resize(&p.Status.ContainerStatuses[0])
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending,
				Reason: corev1.PodReasonInfeasible, Status: corev1.ConditionTrue}}
		},
	} {
		whole := ordinary()
		change(whole)
		before := seen(whole)
		if reflect.DeepEqual(before, seen(ordinary())) {
			t.Errorf("%s: planning sees nothing of it", name)
		}
		if translate.SparePod(whole); !reflect.DeepEqual(seen(whole), before) {
			t.Errorf("%s: planning sees\n%+v\nof what is kept, of the whole\n%+v", name, seen(whole), before)
		}
	}
	if spared < 30 {
		t.Errorf("of %d fields something is left out: want it of most that tell how containers run", spared)
	}
}

// resize gives a container of a pod more than it asks for.
func resize(status *corev1.ContainerStatus) {
	more := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	status.AllocatedResources, status.Resources = more, &corev1.ResourceRequirements{Requests: more}
}

// seen returns what planning sees of a pod, and of DaemonSets with the pod as template.
func seen(pod *corev1.Pod) (all []any) {
	space, now := resources.NewSpace(), time.Unix(1_800_000_000, 0)
	asPod, err := translate.Pod(space, pod, now)
	all = append(all, asPod, message(err))
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
	set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	asDaemon, err := translate.Daemon(space, set, translate.Admission{}, pod)
	return append(all, asDaemon, message(err), translate.Finished(pod), translate.Provisionable(pod),
		translate.Chosen(pod), translate.Preempting(pod),
		translate.DaemonNode(pod), translate.HasVolumes(&pod.Spec))
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// isNode reports whether an object keeps all its annotations: a patch of those of a node says what there was.
func isNode(object any) bool {
	_, is := object.(*corev1.Node)
	return is
}

// B-22: a workload's template is stripped like a pod, and a node loses its images; a value that is no object is
// returned unchanged.
func TestB22_WhatIsSparedOfOtherKinds(t *testing.T) {
	t.Parallel()
	spec := corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "SECRET"}}}},
	}
	meta := metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "own": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	template := corev1.PodTemplateSpec{Spec: spec}
	for _, object := range []any{
		&corev1.PodTemplate{ObjectMeta: meta, Template: template},
		&corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Template: &template}},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
		&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}},
		&corev1.Node{
			ObjectMeta: meta, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"image"}}}},
		},
	} {
		copied := reflect.ValueOf(object).MethodByName("DeepCopy").Call(nil)[0].Interface()
		spare, err := translate.Spare(copied)
		text := reflect.ValueOf(spare).MethodByName("String").Call(nil)[0].String()
		if err != nil || strings.Contains(text, "image") || strings.Contains(text, "SECRET") ||
			strings.Contains(text, "last-applied") != isNode(object) || !strings.Contains(text, "own") {
			t.Errorf("%T: %s, error %v", object, text, err)
		}
	}
	for _, as := range []any{"a tombstone", &corev1.ReplicationController{}} { // the other has no template
		if spare, err := translate.Spare(as); spare != as || err != nil {
			t.Errorf("%v, error %v", spare, err)
		}
	}
}
