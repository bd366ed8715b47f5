package autonode

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

// requirementsOf returns the entries of a NodePool or an OpenshiftNodePool as stored.
func requirementsOf(o *unstructured.Unstructured) []any {
	entries, _ := field(o, "spec", "template", "spec", "requirements").([]any)
	return entries
}

// merged waits until the NodePool has exactly these entries, in this order.
func (w *world) merged(name string, want ...object) {
	w.t.Helper()
	since := time.Now()
	w.eventually("the requirements of NodePool "+name, func() (bool, string) {
		pool := w.get(nodePoolKind, name)
		if pool == nil {
			return false, "there is no such NodePool"
		}
		got := requirementsOf(pool)
		return reflect.DeepEqual(got, list(want...)) || len(got)+len(want) == 0,
			fmt.Sprintf("%s, want %s", show(got), show(want))
	})
	w.saw(attack.Held, "", "NodePool "+name+" is as the policy wants it", since)
}

// fold combines the entries of a NodePool and its template's labels as the node controller does.
func (w *world) fold(name string) requirement.Set {
	w.t.Helper()
	var pool karpenterv1.NodePool
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.get(nodePoolKind, name).Object,
		&pool); err != nil {
		w.t.Fatal(err)
	}
	set, _, err := translate.PoolRequirements(&pool)
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

// folds demands that exactly the wanted ones of the offered values are left for a key.
func (w *world) folds(name, key string, offered, want []string) {
	w.t.Helper()
	allowed := w.fold(name).Get(requirement.Key(key))
	left := []string{}
	for _, value := range offered {
		if allowed.Has(value) {
			left = append(left, value)
		}
	}
	if !reflect.DeepEqual(left, want) {
		w.t.Errorf("NodePool %s leaves %v of %v for %s, want %v", name, left, offered, key, want)
	}
}

// rootOf returns the root device's mappings of an EC2NodeClass, and the others.
func rootOf(class *unstructured.Unstructured) (roots []object, others []any) {
	mappings, _ := field(class, "spec", "blockDeviceMappings").([]any)
	for _, m := range mappings {
		if m, ok := m.(object); ok && (m["deviceName"] == rootDevice || m["rootVolume"] == true) {
			roots = append(roots, m)
			continue
		}
		others = append(others, m)
	}
	return roots, others
}

const rootDevice = "/dev/xvda"

// hardCoded is the root volume if no policy says otherwise.
const hardCoded = "{volumeSize: 75Gi, volumeType: gp3, encrypted: true}"

// rooted waits until each EC2NodeClass has exactly one root mapping, with exactly these settings of its volume.
func (w *world) rooted(ebs string, names ...string) {
	w.t.Helper()
	want := parse(ebs)
	since := time.Now()
	for _, name := range names {
		w.eventually("the root volume of EC2NodeClass "+name, func() (bool, string) {
			class := w.get(nodeClassKind, name)
			if class == nil {
				return false, "there is no such EC2NodeClass"
			}
			roots, _ := rootOf(class)
			saw := fmt.Sprintf("%s, want %s", show(roots), show(want))
			if len(roots) != 1 || roots[0]["deviceName"] != rootDevice {
				return false, saw
			}
			return sameVolume(roots[0]["ebs"], want), saw
		})
	}
	w.saw(attack.Held, "", fmt.Sprintf("the root volume of EC2NodeClass %s is the policy's",
		strings.Join(names, ", ")), since)
}

// sameVolume compares the settings that want names. iops and throughput may only exist if want names them.
func sameVolume(ebs any, want object) bool {
	got, _ := ebs.(object)
	for _, key := range []string{"volumeSize", "volumeType", "encrypted", "iops", "throughput"} {
		if !reflect.DeepEqual(got[key], want[key]) {
			return false
		}
	}
	return true
}

// says waits for a condition with these parts in its message. An empty reason stands for any.
func (w *world) says(look func() *unstructured.Unstructured, kind, status, reason string, parts ...string) object {
	w.t.Helper()
	since := time.Now()
	var last object
	w.eventually(fmt.Sprintf("condition %s=%s %s %q", kind, status, reason, parts), func() (bool, string) {
		o := look()
		if o == nil {
			return false, "there is no object"
		}
		last = condition(o, kind)
		if last == nil {
			return false, "no such condition in " + show(field(o, "status", "conditions"))
		}
		message, _ := last["message"].(string)
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return false, show(last)
			}
		}
		return last["status"] == status && (reason == "" || last["reason"] == reason), show(last)
	})
	how := attack.Told
	if status == "True" {
		how = attack.Held
	}
	message, _ := last["message"].(string)
	w.saw(how, "the operator", fmt.Sprintf("%s=%s %v: %s", kind, status, last["reason"], message), since)
	return last
}

// poolSays is says for an OpenshiftNodePool.
func (w *world) poolSays(name, kind, status, reason string, parts ...string) object {
	w.t.Helper()
	return w.says(func() *unstructured.Unstructured { return w.get(poolWrapper, name) }, kind, status, reason,
		parts...)
}

// classSays is says for an OpenshiftEC2NodeClass.
func (w *world) classSays(name, kind, status, reason string, parts ...string) object {
	w.t.Helper()
	return w.says(func() *unstructured.Unstructured { return w.get(classWrapper, name) }, kind, status, reason,
		parts...)
}

// policyRead waits until the operator has read the present policy.
func (w *world) policyRead() {
	w.t.Helper()
	w.eventually("the policy to be read", func() (bool, string) {
		p := w.get(policyKind, "default")
		if p == nil {
			return false, "there is none"
		}
		ready := condition(p, "Ready")
		return ready != nil && ready["observedGeneration"] == p.GetGeneration(), show(ready)
	})
}

// policySays waits for the Ready condition of the policy, made for its present generation.
func (w *world) policySays(status, reason string, parts ...string) object {
	w.t.Helper()
	return w.says(func() *unstructured.Unstructured {
		p := w.get(policyKind, "default")
		if p == nil {
			return nil
		}
		if ready := condition(p, "Ready"); ready != nil && ready["observedGeneration"] != p.GetGeneration() {
			return newObject(policyKind, w.namespace, "default", nil) // of an earlier generation: as good as none
		}
		return p
	}, "Ready", status, reason, parts...)
}
