package whatif

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxPods bounds the pods that an input's workloads make. More is a typing error, or a cluster that no machine plans
// at once.
const maxPods = 1_000_000

// demand is the demand of a workload: pods of a template.
type demand struct {
	owner    object
	kind     string
	template corev1.PodTemplateSpec
	pods     int64
	claims   []corev1.PersistentVolumeClaim // claims of each pod of a StatefulSet
}

// demandOf returns an object's demand; false if it makes no pods, or leaves that to another object.
func demandOf(o object) (demand, bool, error) {
	d := demand{owner: o, kind: o.GetObjectKind().GroupVersionKind().Kind}
	number := func(field string, of *int32) error {
		d.pods = 1
		if of != nil {
			d.pods = int64(*of)
		}
		if d.pods < 0 || d.pods > maxPods {
			return fmt.Errorf("%s: %s %s: %s is %d: allowed are 0 to %d", o.where, d.kind,
				client.ObjectKeyFromObject(o), field, d.pods, maxPods)
		}
		return nil
	}
	var err error
	switch w := o.Object.(type) {
	case *appsv1.Deployment:
		d.template, err = w.Spec.Template, number("spec.replicas", w.Spec.Replicas)
	case *appsv1.ReplicaSet:
		d.template, err = w.Spec.Template, number("spec.replicas", w.Spec.Replicas)
	case *corev1.ReplicationController:
		if w.Spec.Template == nil {
			return d, false, nil
		}
		d.template, err = *w.Spec.Template, number("spec.replicas", w.Spec.Replicas)
	case *appsv1.StatefulSet:
		d.template, d.claims, err = w.Spec.Template, w.Spec.VolumeClaimTemplates,
			number("spec.replicas", w.Spec.Replicas)
	case *batchv1.Job:
		d.template, err = w.Spec.Template, number("spec.parallelism", atOnce(&w.Spec))
	case *batchv1.CronJob: // one run of it
		d.template, err = w.Spec.JobTemplate.Spec.Template, number("spec.jobTemplate.spec.parallelism",
			atOnce(&w.Spec.JobTemplate.Spec))
	default:
		return d, false, nil
	}
	// Pods of an object that another one controls are counted there.
	return d, metav1.GetControllerOf(o) == nil, err
}

// atOnce returns how many pods of a Job run at the same time.
func atOnce(spec *batchv1.JobSpec) *int32 {
	most := spec.Parallelism
	if spec.Completions != nil && (most == nil || *spec.Completions < *most) &&
		(most != nil || *spec.Completions < 1) {
		return spec.Completions
	}
	return most
}

// expand returns the pods that a workload lacks, named NAME-0 and on, and the claims that come with them. have is the
// number of its existing pods. taken are the names of existing pods, namespace/name.
func (d demand) expand(have int64,
	taken map[string]bool) (pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim) {
	yes := true
	reference := metav1.OwnerReference{
		APIVersion: d.owner.GetObjectKind().GroupVersionKind().GroupVersion().String(), Kind: d.kind,
		Name: d.owner.GetName(), UID: uidOf(d.owner), Controller: &yes,
	}
	number := 0
	for range max(0, d.pods-have) {
		for taken[fmt.Sprintf("%s/%s-%d", d.owner.GetNamespace(), d.owner.GetName(), number)] {
			number++
		}
		name := fmt.Sprintf("%s-%d", d.owner.GetName(), number)
		number++
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: *d.template.ObjectMeta.DeepCopy(), Spec: *d.template.Spec.DeepCopy(),
		}
		pod.Namespace, pod.Name = d.owner.GetNamespace(), name
		pod.OwnerReferences = []metav1.OwnerReference{reference}
		for _, template := range d.claims {
			claim := template.DeepCopy()
			claim.Namespace, claim.Name = pod.Namespace, template.Name+"-"+name
			claims = append(claims, claim)
			mount(&pod.Spec, template.Name, claim.Name)
		}
		pods = append(pods, pod)
	}
	return pods, claims
}

// mount makes a pod of a StatefulSet use its own claim.
func mount(spec *corev1.PodSpec, volume, claim string) {
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == volume {
			spec.Volumes[i].VolumeSource = source
			return
		}
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: source})
}

// uidOf returns the UID of an object, or one made from its name, since objects of files have none.
func uidOf(o client.Object) types.UID {
	if uid := o.GetUID(); uid != "" {
		return uid
	}
	kind := o.GetObjectKind().GroupVersionKind().Kind
	return types.UID("uid-of-" + kind + "-" + o.GetNamespace() + "/" + o.GetName())
}

// ownerOf returns the workload of a pod, KIND/NAME: for a ReplicaSet its Deployment, if known.
func ownerOf(pod *corev1.Pod, sets map[string]string) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return "Pod/" + pod.Name
	}
	if owner.Kind == "ReplicaSet" {
		if deployment := sets[pod.Namespace+"/"+owner.Name]; deployment != "" {
			return "Deployment/" + deployment
		}
	}
	return owner.Kind + "/" + owner.Name
}
