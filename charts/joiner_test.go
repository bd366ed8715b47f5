package charts_test

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/deploy"
)

// controller renders the chart of joiner with its values, changed by set.
func controller(t *testing.T, set map[string]any) map[string][]byte {
	t.Helper()
	values := map[string]any{"image": "joiner:1"}
	maps.Copy(values, set)
	return render(t, charts.Joiner, values)
}

func read[T any](t *testing.T, document []byte) (found T) {
	t.Helper()
	if document == nil {
		t.Fatalf("no document for a %T", found)
	}
	if err := yaml.UnmarshalStrict(document, &found); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return found
}

// right has the common fields of RBAC objects.
type right struct {
	APIVersion string
	Kind       string
	Metadata   struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Rules    []rbacv1.PolicyRule
	RoleRef  rbacv1.RoleRef
	Subjects []rbacv1.Subject
}

// the chart grants what deploy/ grants, to the service account and in the release's namespace. It grants what
// v1beta1 needs only if that is served or being removed.
func TestTheChartGrantsWhatDeployGrants(t *testing.T) {
	t.Parallel()
	for mode, sets := range map[string][]map[string][]byte{
		"Disable": {deploy.Manifests()}, "Enable": {deploy.Manifests(), deploy.V1beta1()},
		"Withdraw": {deploy.Manifests(), deploy.V1beta1()},
	} {
		documents := controller(t, map[string]any{"v1beta1.mode": mode})
		wanted := 0
		for _, set := range sets {
			for name, content := range set {
				if !bytes.Equal(file(t, charts.Joiner+"/files/"+name), content) {
					t.Errorf("the chart has another %s than deploy/: copy it (make generate does)", name)
				}
				for document := range strings.SplitSeq(string(content), "\n---\n") {
					want := read[right](t, []byte(document))
					if want.Metadata.Namespace != "" {
						want.Metadata.Namespace = "hcp-a"
					}
					if want.Subjects != nil {
						want.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "joiner", Namespace: "hcp-a"}}
					}
					if got := read[right](t, documents[want.Kind+"/"+want.Metadata.Name]); !reflect.DeepEqual(got,
						want) {
						t.Errorf("with mode %s the chart has\n%+v\ndeploy/\n%+v", mode, got, want)
					}
					wanted++
				}
			}
		}
		rights := 0
		for name := range documents {
			kind, own, _ := strings.Cut(name, "/")
			if own == "joiner-admin" || own == "joiner-view" { // for users, see TestK21_UsersGetRights
				continue
			}
			if strings.Contains(kind, "Role") || kind == "Secret" {
				rights++
			}
		}
		if rights != wanted {
			t.Errorf("with mode %s the chart has %v, want %d of RBAC", mode, slices.Sorted(maps.Keys(documents)),
				wanted)
		}
	}
}

// selects reports whether a selector matches these labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// V-01: the chart has the CRDs in the folder from which Helm installs them once, and neither changes nor deletes them.
// The policy is beside them.
func TestTheChartHoldsTheDefinitions(t *testing.T) {
	t.Parallel()
	manifests, err := crd.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	found, err := fs.Glob(charts.Files(), charts.Joiner+"/crds/*")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := fs.Glob(charts.Files(), charts.Joiner+"/files/policy_*")
	if err != nil {
		t.Fatal(err)
	}
	if found = append(found, policies...); len(found) != len(manifests) {
		t.Errorf("the chart has %v, api/crd %v", found, slices.Sorted(maps.Keys(manifests)))
	}
	for _, name := range found {
		if !bytes.Equal(file(t, name), manifests[path.Base(name)]) {
			t.Errorf("%s is another one than in api/crd: copy it (make generate does)", name)
		}
	}
	if documents := controller(t, nil); documents["ValidatingAdmissionPolicy/expired-budget.karpenter.sh"] == nil ||
		documents["ValidatingAdmissionPolicyBinding/expired-budget.karpenter.sh"] == nil {
		t.Errorf("no policy among %v", slices.Sorted(maps.Keys(documents)))
	}
}

// V-20, X-14: two pods run as nobody on a read-only file system, and not on nodes that Joiner launches. By the service
// the API server finds the conversion; its pods are ready before they have listed anything. The certificates are those
// that were requested.
func TestTheControllersDeployment(t *testing.T) {
	t.Parallel()
	plain := read[appsv1.Deployment](t, controller(t, nil)["Deployment/joiner"])
	pod := plain.Spec.Template.Spec
	container := pod.Containers[0]
	if *plain.Spec.Replicas != 2 || !*pod.SecurityContext.RunAsNonRoot ||
		!*container.SecurityContext.ReadOnlyRootFilesystem || *container.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("the Deployment is %+v", plain.Spec)
	}
	if want := []string{"--system-namespace=hcp-a"}; !slices.Equal(container.Args, want) {
		t.Errorf("the arguments are %q, want %q", container.Args, want)
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if terms[0].MatchExpressions[0].Key != "karpenter.sh/nodepool" {
		t.Errorf("the pods run on %+v", terms)
	}
	set := map[string]any{"v1beta1.mode": "Enable", "extraArgs": []any{"--batch-idle-duration=2s"}}
	documents := controller(t, set)
	enabled := read[appsv1.Deployment](t, documents["Deployment/joiner"]).Spec.Template.Spec.Containers[0]
	for _, want := range []string{"--v1beta1", "--karpenter-service=joiner", "--webhook-port=8443",
		"--cert-lifetime=2160h", "--batch-idle-duration=2s"} {
		if !slices.Contains(enabled.Args, want) {
			t.Errorf("the arguments %q lack %s", enabled.Args, want)
		}
	}
	service := read[corev1.Service](t, documents["Service/joiner"])
	if port := service.Spec.Ports[1]; port.Port != 8443 || port.TargetPort.StrVal != enabled.Ports[2].Name ||
		enabled.Ports[2].ContainerPort != 8443 ||
		enabled.ReadinessProbe.HTTPGet.Path != "/healthz" || container.ReadinessProbe.HTTPGet.Path != "/readyz" ||
		!selects(service.Spec.Selector, plain.Spec.Template.Labels) {
		t.Errorf("the Service is %+v, the probe %+v", service.Spec, enabled.ReadinessProbe)
	}
	set["v1beta1.certificates.secret"] = "mine"
	given := read[appsv1.Deployment](t, controller(t, set)["Deployment/joiner"]).Spec.Template.Spec
	if args := given.Containers[0].Args; !slices.Contains(args, "--tls-ca-file=/etc/certificates/ca.crt") ||
		slices.Contains(args, "--cert-lifetime=2160h") || given.Volumes[0].Secret.SecretName != "mine" {
		t.Errorf("with a Secret of somebody else the pod has %q and %v", args, given.Volumes)
	}
	withdrawn := read[appsv1.Deployment](t,
		controller(t, map[string]any{"v1beta1.mode": "Withdraw"})["Deployment/joiner"])
	if args := withdrawn.Spec.Template.Spec.Containers[0].Args; slices.Contains(args, "--v1beta1") {
		t.Errorf("withdrawn, the arguments are %q", args)
	}
}

// K-26: to a process that only observes, the chart grants the reading verbs of every rule and nothing else.
func TestK26_TheChartGrantsReading(t *testing.T) {
	t.Parallel()
	all, reads := controller(t, nil), controller(t, map[string]any{"observeOnly": true})
	reading := func(rules []rbacv1.PolicyRule) (kept []rbacv1.PolicyRule) {
		for _, rule := range rules {
			rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
				return verb != "get" && verb != "list" && verb != "watch"
			})
			if len(rule.Verbs) > 0 {
				kept = append(kept, rule)
			}
		}
		return kept
	}
	granted := 0
	for name, document := range all {
		if reads[name] == nil && strings.Contains(string(document), "rbac.authorization.k8s.io/aggregate-to-") {
			continue // rights of users
		}
		if !strings.Contains(string(document), "kind: ClusterRole\n") &&
			!strings.Contains(string(document), "kind: Role\n") {
			continue
		}
		want, got := reading(read[right](t, document).Rules), read[right](t, reads[name]).Rules
		if granted += len(got); !reflect.DeepEqual(got, want) {
			t.Errorf("%s grants\n%v\nwant\n%v", name, got, want)
		}
	}
	if granted < 10 {
		t.Errorf("%d rules are granted: an observer sees nothing", granted)
	}
	deployed := string(reads["Deployment/joiner"])
	if !strings.Contains(deployed, "--observe-only") {
		t.Errorf("the process is not told to observe only:\n%s", deployed)
	}
}
