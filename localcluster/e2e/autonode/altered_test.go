package autonode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The customer's admission changes what the operator writes: A-01 for products, A-03 for the status of wrappers.

// mutationPatience is how long the operator may take to find an alteration, and to notice its end.
const mutationPatience = 25 * time.Second

var mutatingKind = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1",
	Kind: "MutatingAdmissionPolicy"}

// mutation is a mutating admission policy.
type mutation struct {
	name            string
	group, resource string // of what it changes, in all versions
	object          string // the name of the only object that it changes; "" for all
	expression      string // in CEL: a list of JSON patches
}

// mutate puts a mutation into force as the customer; end removes it.
func (w *world) mutate(m mutation) (end func()) {
	w.t.Helper()
	bindingOf := mutatingKind
	bindingOf.Kind += "Binding"
	matches := "true"
	if m.object != "" {
		matches = "object.metadata.name == '" + m.object + "'"
	}
	policy := newObject(mutatingKind, "", m.name, object{
		"failurePolicy": "Fail", "reinvocationPolicy": "Never",
		"matchConstraints": object{"resourceRules": list(object{
			"apiGroups": []any{m.group}, "apiVersions": []any{"*"}, "resources": []any{m.resource},
			"operations": []any{"CREATE", "UPDATE"},
		})},
		"matchConditions": list(object{"name": "this-object", "expression": matches}),
		"mutations":       list(object{"patchType": "JSONPatch", "jsonPatch": object{"expression": m.expression}}),
	})
	bind := newObject(bindingOf, "", m.name, object{"policyName": m.name})
	w.put(w.cadmin, policy)
	w.put(w.cadmin, bind)
	ended := false
	end = func() {
		if !ended {
			w.remove(w.cadmin, bind)
			w.remove(w.cadmin, policy)
		}
		ended = true
	}
	w.t.Cleanup(end)
	return end
}

// classMutations returns mutations of one field each of an EC2NodeClass, by the beginning of the path that a condition
// must name.
func classMutations() map[string]string {
	return map[string]string{
		"spec.amiSelectorTerms[0].id": `[JSONPatch{op: "replace", path: "/spec/amiSelectorTerms", ` +
			`value: [{"id": "ami-0bad"}]}]`,
		"spec.instanceProfile": `[JSONPatch{op: "replace", path: "/spec/instanceProfile", value: "admin"}]`,
		"spec.userData":        `[JSONPatch{op: "replace", path: "/spec/userData", value: "evil"}]`,
		"spec.securityGroupSelectorTerms[0].tags": `[JSONPatch{op: "replace", path: ` +
			`"/spec/securityGroupSelectorTerms", value: [{"id": "sg-0bad"}]}]`,
		"spec.tags.evil": `[JSONPatch{op: "add", path: "/spec/tags", value: {"evil": "1"}}]`,
		"spec.metadataOptions.httpTokens": `[JSONPatch{op: "add", path: "/spec/metadataOptions", value: ` +
			`{"httpTokens": "optional"}}]`,
		"spec.blockDeviceMappings": `[JSONPatch{op: "add", path: "/spec/blockDeviceMappings/-", ` +
			`value: {"deviceName": dyn("/dev/xvdb"), "ebs": dyn({"volumeSize": "1Gi"})}}]`,
		"spec.kubelet.maxPods": `[JSONPatch{op: "add", path: "/spec/kubelet", value: {"maxPods": 250}}]`,
	}
}

// any field of an EC2NodeClass that is changed on its way to storage is found and named by its path, and the
// policy is not Ready.
func TestA01_AnyFieldOfAClassThatIsChangedOnTheWayIsFound(t *testing.T) {
	w := begin(t)
	w.policy(root("{volumeSize: 90Gi}"))
	mutations := classMutations()
	var paths []string
	for path := range mutations {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var ends []func()
	began := time.Now()
	for i, path := range paths {
		name := fmt.Sprintf("a01-%d", i)
		ends = append(ends,
			w.mutate(mutation{name: name, group: "karpenter.k8s.aws", resource: "ec2nodeclasses", object: name,
				expression: mutations[path]}))
	}
	w.eventually("the mutations to be in force", func() (bool, string) {
		return time.Since(began) > 3*time.Second, "the API server looks once a second"
	})
	began = time.Now()
	for i := range paths {
		w.class(fmt.Sprintf("a01-%d", i), object{"monitoring": "Basic"})
	}
	w.allFound(paths, began)
	w.policySays("False", "AlteredOnWrite", "a01-0", "a01-7")
	for _, end := range ends {
		end()
	}
	began = time.Now()
	w.eventuallyIn(mutationPatience, "the policy to be Ready again", func() (bool, string) {
		ready := condition(w.get(policyKind, "default"), "Ready")
		return ready["status"] == "True", show(ready)
	})
	t.Logf("Ready again %s after the mutations went", time.Since(began).Round(time.Millisecond))
}

// allFound waits until the class of each path says that the field there was altered.
func (w *world) allFound(paths []string, began time.Time) {
	w.t.Helper()
	found := map[string]time.Duration{}
	w.eventuallyIn(mutationPatience, "every class to name its altered field", func() (bool, string) {
		var missing []string
		for i, path := range paths {
			said := condition(w.get(classWrapper, fmt.Sprintf("a01-%d", i)), "PolicyApplied")
			message, _ := said["message"].(string)
			switch {
			case said["status"] != "False" || said["reason"] != "AlteredOnWrite" || !strings.Contains(message, path):
				missing = append(missing, path+": "+show(said))
			case found[path] == 0:
				found[path] = time.Since(began)
			}
		}
		return len(missing) == 0, strings.Join(missing, "\n")
	})
	for _, path := range paths {
		w.t.Logf("%s: found %s after the first write", path, found[path].Round(time.Millisecond))
	}
}
