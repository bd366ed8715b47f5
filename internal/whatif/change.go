package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Change is a change of a cluster (U-03).
type Change struct {
	// Documents replace the objects of the same kind, namespace and name, or are added.
	Documents []Document
	// Delete names objects to delete, KIND/NAME or KIND/NAMESPACE/NAME.
	Delete []string
	// Scale sets the replicas of Deployments, NAMESPACE/NAME=N.
	Scale []string
	// RemoveNodes names nodes or NodeClaims to remove.
	RemoveNodes []string
}

// Empty reports whether the change is empty.
func (c Change) Empty() bool {
	return len(c.Documents)+len(c.Delete)+len(c.Scale)+len(c.RemoveNodes) == 0
}

// Reasons for removing a node without a disruption method: somebody asks for it.
const (
	removedByHand plan.DisruptionReason = "Removed"
	poolDeleted   plan.DisruptionReason = "NodePoolDeleted"
)

// edit is the change of one object. old is nil for an added object, fresh for a deleted one.
type edit struct {
	old, fresh *object
	// remade says that the pods of the workload are recreated because its template has changed.
	remade bool
	diff   []Difference
}

func (e edit) about() object {
	if e.fresh != nil {
		return *e.fresh
	}
	return *e.old
}

// id identifies an object.
type id struct {
	kind            schema.GroupKind
	namespace, name string
}

func idOf(o client.Object) id {
	return id{o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// edits returns the edits of a change, in the order of kinds and names. The error names every part that is impossible.
func (w *World) edits(c Change) ([]edit, error) {
	r, err := newReader()
	if err != nil {
		return nil, err
	}
	known := map[id]*object{}
	for i := range w.objects {
		known[idOf(w.objects[i])] = &w.objects[i]
	}
	found, faults := map[id]edit{}, []error(nil)
	add := func(e edit, err error) {
		switch o := e.about; {
		case err != nil:
			faults = append(faults, err)
		case e.old == nil && e.fresh == nil:
		case found[idOf(o())].diff != nil:
			faults = append(faults, fmt.Errorf("%s: %s %s is changed twice", o().where, kindOf(o()),
				nameOfObject(o())))
		default:
			found[idOf(o())] = e
		}
	}
	for _, d := range c.Documents {
		add(w.replaced(r, d, known))
	}
	for _, text := range c.Delete {
		add(w.deleted(text))
	}
	for _, text := range c.Scale {
		add(w.scaled(text))
	}
	list := make([]edit, 0, len(found))
	for _, e := range found {
		if len(e.diff) > 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b edit) int {
		x, y := a.about(), b.about()
		return cmp.Or(strings.Compare(kindOf(x), kindOf(y)), strings.Compare(x.GetNamespace(), y.GetNamespace()),
			strings.Compare(x.GetName(), y.GetName()))
	})
	return list, errors.Join(faults...)
}

func kindOf(o client.Object) string { return o.GetObjectKind().GroupVersionKind().Kind }

func nameOfObject(o client.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// replaced returns the edit for an object that replaces another one, or is added.
func (w *World) replaced(r *reader, d Document, known map[id]*object) (edit, error) {
	fresh, err := r.read(d)
	if err != nil {
		return edit{}, err
	}
	if fresh == nil {
		kind, _ := d.Content["kind"].(string)
		w.Notes = append(w.Notes,
			fmt.Sprintf("%s: %s %s is of a kind that planning does not look at: it changes nothing here",
				d.Where, kind, nameOf(d.Content)))
		return edit{}, nil
	}
	if namespaced(fresh.Object) && fresh.GetNamespace() == "" {
		fresh.SetNamespace(metav1.NamespaceDefault)
	}
	old := known[idOf(fresh)]
	e := edit{old: old, fresh: fresh}
	if old != nil {
		err := inherit(old, fresh)
		gvk := fresh.GetObjectKind().GroupVersionKind()
		if own := r.definitions.of(gvk.GroupKind()); own != nil && err == nil {
			err = own.change(gvk.Version, old.Object, fresh.Object)
		}
		if err != nil {
			return edit{}, fmt.Errorf("%s: %s %s: %w", d.Where, kindOf(fresh), nameOfObject(fresh), err)
		}
	}
	if _, _, err := demandOf(*fresh); err != nil {
		return edit{}, err
	}
	e.diff = differences(old, fresh)
	e.remade = old != nil && slices.ContainsFunc(e.diff, func(d Difference) bool { return ofTemplate(d.Path) })
	return e, nil
}

// ofTemplate reports whether a path is in the pod template of a workload.
func ofTemplate(path string) bool {
	return strings.HasPrefix(path, "spec.template.") || strings.HasPrefix(path, "spec.jobTemplate.spec.template.")
}

// inherit gives an object what an API server keeps of the old one: identity, status, and labels and annotations that
// the new one lacks. If the kind's defaults are not filled in here, it also keeps fields that only the API server
// wrote.
func inherit(old, fresh *object) error {
	if old.stored && looksAt(fresh.GetObjectKind().GroupVersionKind()) {
		if err := overlay(old, fresh); err != nil {
			return err
		}
	}
	fresh.SetUID(old.GetUID())
	fresh.SetCreationTimestamp(old.GetCreationTimestamp())
	fresh.SetGeneration(old.GetGeneration())
	fresh.SetOwnerReferences(old.GetOwnerReferences())
	fresh.SetFinalizers(old.GetFinalizers())
	fresh.SetLabels(merged(old.GetLabels(), fresh.GetLabels()))
	fresh.SetAnnotations(merged(old.GetAnnotations(), fresh.GetAnnotations()))
	if _, isPod := fresh.Object.(*corev1.Pod); isPod {
		return nil // it is another pod
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old.Object)
	if err != nil {
		return err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fresh.Object)
	if err != nil {
		return err
	}
	if after["status"] = before["status"]; before["status"] == nil {
		delete(after, "status")
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(after, fresh.Object)
}

func merged(old, fresh map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{old, fresh} {
		for key, value := range m {
			all[key] = value
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// deleted returns the edit for an object to delete.
func (w *World) deleted(text string) (edit, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return edit{}, fmt.Errorf("--delete is %q: name it KIND/NAME, or KIND/NAMESPACE/NAME", text)
	}
	kind, namespace, name := parts[0], metav1.NamespaceDefault, parts[len(parts)-1]
	if len(parts) == 3 {
		namespace = parts[1]
	}
	var near []string
	for i := range w.objects {
		o := &w.objects[i]
		if !strings.EqualFold(kindOf(o), kind) && !strings.EqualFold(kindOf(o)+"s", kind) {
			continue
		}
		if o.GetName() == name && (o.GetNamespace() == "" || o.GetNamespace() == namespace) {
			if _, isNode := o.Object.(*corev1.Node); isNode {
				return edit{}, fmt.Errorf("--delete %s: a node goes by --remove-node %s", text, name)
			}
			if _, isNamespace := o.Object.(*corev1.Namespace); isNamespace {
				return edit{}, fmt.Errorf("--delete %s: what is in a namespace is not followed: name its workloads",
					text)
			}
			return edit{old: o, diff: []Difference{{Old: "is there"}}}, nil
		}
		near = append(near, nameOfObject(o))
	}
	slices.Sort(near)
	if len(near) == 0 {
		return edit{}, fmt.Errorf("--delete %s: there is no object of the kind %s: those that there are: %s", text,
			kind, strings.Join(w.kindNames(), ", "))
	}
	return edit{}, fmt.Errorf("--delete %s: there is no such %s: those that there are: %s", text, kind, listed(near))
}

// kindNames returns the kinds of all objects, sorted.
func (w *World) kindNames() []string {
	var names []string
	for kind := range w.Kinds() {
		names = append(names, kind)
	}
	slices.Sort(names)
	return names
}

// listed joins the first names of a list, and counts the others.
func listed(list []string) string { return firstOf(list, len(list), namesShown) }

// scaled returns the edit for a Deployment with another number of replicas.
func (w *World) scaled(text string) (edit, error) {
	wrong := fmt.Errorf("--scale is %q: write NAMESPACE/DEPLOYMENT=N, with N from 0 to %d", text, maxPods)
	name, number, found := strings.Cut(text, "=")
	replicas, err := parseReplicas(number)
	namespace, short, both := strings.Cut(name, "/")
	if !both {
		namespace, short = metav1.NamespaceDefault, name
	}
	if !found || err != nil || short == "" || namespace == "" || strings.Contains(short, "/") {
		return edit{}, wrong
	}
	var near []string
	for i := range w.objects {
		old, isDeployment := w.objects[i].Object.(*appsv1.Deployment)
		if !isDeployment {
			continue
		}
		if old.Namespace == namespace && old.Name == short {
			fresh := &object{where: "--scale " + text, Object: old.DeepCopy()}
			fresh.Object.(*appsv1.Deployment).Spec.Replicas = &replicas
			return edit{old: &w.objects[i], fresh: fresh, diff: differences(&w.objects[i], fresh)}, nil
		}
		near = append(near, nameOfObject(old))
	}
	slices.Sort(near)
	if len(near) == 0 {
		return edit{},
			fmt.Errorf("--scale %s: there is no Deployment: neither among the files nor in the cluster, as "+
				"far as it could be read",
				text)
	}
	return edit{}, fmt.Errorf("--scale %s: there is no such Deployment: those that there are: %s", text, listed(near))
}
