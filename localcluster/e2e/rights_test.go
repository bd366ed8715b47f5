package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// right is a verb that Joiner may use on a resource, as "verb resource.group".
type right string

func rightOf(verb, resource, group string) right {
	if group == "" {
		return right(verb + " " + resource)
	}
	name, sub, has := strings.Cut(resource, "/")
	if has {
		sub = "/" + sub
	}
	return right(verb + " " + name + "." + group + sub)
}

// granted returns all rights of deploy/rbac.yaml.
func granted(t *testing.T) map[right]bool {
	t.Helper()
	all := map[right]bool{}
	for _, content := range deploy.Manifests() {
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var role rbacv1.Role // a ClusterRole has its rules in the same place
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							all[rightOf(verb, resource, group)] = true
						}
					}
				}
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d rights are granted", len(all))
	}
	return all
}

// elsewhere returns the rights that this test's story does not need, each with the test that fails without it.
func elsewhere() map[right]string {
	return map[right]string{
		"list ec2nodeclasses.karpenter.k8s.aws":         "TestASpotWarning",
		"watch ec2nodeclasses.karpenter.k8s.aws":        "TestASpotWarning",
		"patch ec2nodeclasses.karpenter.k8s.aws":        "TestASpotWarning",
		"patch ec2nodeclasses.karpenter.k8s.aws/status": "TestASpotWarning",
		"get daemonsets.apps":                           "TestASpotWarning", // aws-node
		"get services":                                  "TestASpotWarning", // kube-dns
		"patch nodes/status":                            "TestAnUnhealthyNodeIsRebooted",
		// No request needs them. The plugin that this test switches on does, and without them nothing is launched.
		"update nodepools.karpenter.sh/finalizers":  "TestU11_EachRightOfJoinerIsNeeded",
		"update nodeclaims.karpenter.sh/finalizers": "TestU11_EachRightOfJoinerIsNeeded",
	}
}

// spare returns the rights that no request of this story needs. A lease's event is patched when it is repeated within
// minutes, and the leader does not change so often here. If such a right is needed after all, the test fails.
func spare() []right { return []right{"patch events"} }

// unreached returns the rights of requests that this story makes only by chance, each with the file and the call that
// makes the request.
func unreached() map[right][2]string {
	return map[right][2]string{
		"get nodeclaims.karpenter.sh": {"../../internal/controller/claim/garbage.go", "Live.Get("},
		// An event that is repeated word for word within minutes is only counted up.
		"patch events.events.k8s.io": {"../../internal/kube/event/action.go", "recorder.Eventf("},
	}
}

// everyRight begins a story in which Joiner does all that it does in a cluster with simulated machines: launches of
// slow machines, overlays, and a drain that a budget holds up until its deadline.
const everyRight = `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: dearer}
spec:
  requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
  priceAdjustment: "+10%"
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: none, namespace: default}
spec: {podTemplateRef: {name: gone}, replicas: 0}
---
`

// U-11: the test finds rights that no request needs, and requests without a right. The API server's own log has
// Joiner's requests.
func TestU11_EachRightOfJoinerIsNeeded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) {
		o.Audit = true
		o.ExtraArgs = map[cluster.Component][]string{cluster.APIServer: {
			"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}
		// Some API servers have no watches that begin with a list. With them Joiner requests lists.
		o.Env = append(o.Env, "KUBE_FEATURE_WatchListClient=false")
		o.Args = append(o.Args, "--disable-leader-election=false", "--ignore-dra-requests=false",
			`--default-spread-constraints=[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone",`+
				`"whenUnsatisfiable":"ScheduleAnyway"}]`)
	})
	r.apply(everyRight + strings.Replace(faultyPool("slow", "slowBoot: [{delay: 3s}]", quick), "      requirements:",
		"      terminationGracePeriod: 5s\n      requirements:", 1))
	// Two nodes start at once: the place on the first one is kept.
	r.apply(deployment("web", 2, "{cpu: 1}", oneEach("web")) + guard("web", "maxUnavailable: 0"))
	r.allRunning(2, later)
	r.run("delete", "nodeclaims", "--all", "--wait=false")
	r.eventually(later, "the pods to be deleted at the deadline", func(ctx context.Context) (bool, string, error) {
		deleted, err := r.Requests()
		n := deleted.Total(func(kind cluster.RequestKind) bool {
			return kind.Verb == "delete" && kind.Resource == "pods"
		})
		return n >= 2, fmt.Sprintf("%d deleted", n), err
	})
	r.allRunning(2, later)
	// Somebody removes a claim behind its controller's back: Joiner asks the API server whether it is gone.
	r.run("delete", "poddisruptionbudget", "web")
	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.run("delete", "nodeclaims", "--all", "--wait=false")
	for _, claim := range claims {
		output, err := r.Kubectl(t.Context(), "", "patch", "nodeclaim", claim.Name, "--type=merge",
			"-p", `{"metadata":{"finalizers":null}}`)
		if err != nil && !strings.Contains(output, "not found") {
			t.Fatal(err)
		}
	}
	r.eventually(later, "the claims to be replaced", func(ctx context.Context) (bool, string, error) {
		now, err := r.claims(ctx)
		old := slices.ContainsFunc(now, func(claim karpenterv1.NodeClaim) bool {
			return slices.ContainsFunc(claims, func(before karpenterv1.NodeClaim) bool {
				return before.UID == claim.UID
			})
		})
		return len(now) > 0 && !old, fmt.Sprintf("%d claims, old ones among them: %t", len(now), old), err
	})
	r.allRunning(2, later)
	r.run("scale", "deployment", "web", "--replicas=0")
	r.nothingLeft(later)
	r.run("delete", "nodepool", "slow", "--wait=true", "--timeout=60s")
	if err := r.StopJoiner(); err != nil { // a watch is in the log when it ends
		t.Fatal(err)
	}
	compareRights(t, r)
}

// compareRights compares the granted rights with the requests in the API server's own log.
func compareRights(t *testing.T, r *testRig) {
	t.Helper()
	may, used, refused := granted(t), map[right]int{}, map[string]int{}
	err := cluster.ReadAudit(r.Cluster.AuditLog(), func(e cluster.Event) {
		if e.User != rig.User || e.Resource == "" {
			return
		}
		resource := e.Resource
		if e.Sub != "" {
			resource += "/" + e.Sub
		}
		used[rightOf(e.Verb, resource, e.Group)]++
		// Whether v1beta1 is left is asked at every start; the right comes with --v1beta1 only (deploy/v1beta1.yaml).
		if e.Code == 403 && resource != "customresourcedefinitions" {
			refused[fmt.Sprintf("%s %s in %q named %q", e.Verb, resource, e.Namespace, e.Name)]++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for request, times := range refused {
		t.Errorf("Joiner has no right to %s (%d times)", request, times)
	}
	others, unused := elsewhere(), spare()
	for one, call := range unreached() {
		content, err := os.ReadFile(call[0])
		if err != nil || !strings.Contains(string(content), call[1]) {
			t.Errorf("%q is said to be needed by %s of %s, which is not there (%v)", one, call[1], call[0], err)
		}
		unused = append(unused, one)
	}
	for _, one := range unused {
		if !may[one] {
			t.Errorf("%q is not granted: it cannot be spare", one)
		}
	}
	for _, one := range slices.Sorted(maps.Keys(may)) {
		switch {
		case used[one] == 0 && others[one] == "" && !slices.Contains(unused, one):
			t.Errorf("deploy/rbac.yaml grants %q, and no request needs it", one)
		case used[one] > 0 && (others[one] != "" || slices.Contains(spare(), one)):
			t.Errorf("%q is needed by this story: it is not spare, and no other test has to stand for it", one)
		}
	}
	for _, one := range slices.Sorted(maps.Keys(used)) {
		if !may[one] {
			t.Logf("beside deploy/rbac.yaml, by what everybody may do: %s", one)
		}
	}
	testsExist(t, may, others)
}

// testsExist demands that rights proved elsewhere are granted, and that those tests exist.
func testsExist(t *testing.T, may map[right]bool, others map[right]string) {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(content)
		}
	}
	for one, test := range others {
		if !may[one] {
			t.Errorf("%q is proved by %s and not granted", one, test)
		}
		if !regexp.MustCompile(`(?m)^func ` + test + `\(t \*testing\.T\)`).MatchString(all.String()) {
			t.Errorf("%q is said to be proved by %s, which there is not", one, test)
		}
	}
}
