package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// The users of a hosted cluster. RBAC allows all of them everything here: what is tested is admission.
const (
	guestAdmin = "system:admin"
	operand    = "system:joiner"
	collector  = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// attempt is a request that the admission policies let through or refuse. All are dry runs.
type attempt struct {
	as, does, to string
	refused      string // what the refusal says; empty when it is let through
}

// useNodePool, useNodeClass and useWrapper are what a refusal tells the user.
const (
	useNodePool  = "NodePool resources cannot be modified directly. Use OpenshiftNodePool instead."
	useNodeClass = "EC2NodeClass resources cannot be modified directly. Use OpenshiftEC2NodeClass instead."
	useWrapper   = "NodeClaim resources cannot be created or changed directly. Use OpenshiftNodePool instead"
)

// whatAlwaysHolds are attempts about R34, R35, R36 and R39, which hold with all settings.
var whatAlwaysHolds = []attempt{
	{guestAdmin, "create", "nodepools", useNodePool}, {guestAdmin, "respec", "nodepools", useNodePool},
	{guestAdmin, "scale", "nodepools", useNodePool}, {guestAdmin, "delete", "nodepools", useNodePool},
	{collector, "delete", "nodepools", useNodePool}, {operand, "respec", "nodepools", useNodePool},
	{guestAdmin, "create", "ec2nodeclasses", useNodeClass}, {guestAdmin, "respec", "ec2nodeclasses", useNodeClass},
	{guestAdmin, "delete", "ec2nodeclasses", useNodeClass},
	{merge.DefaultOperator, "create", "nodepools", ""}, {merge.DefaultOperator, "respec", "nodepools", ""},
	{merge.DefaultOperator, "scale", "nodepools", ""}, {merge.DefaultOperator, "delete", "nodepools", ""},
	{merge.DefaultOperator, "respec", "ec2nodeclasses", ""}, {merge.DefaultOperator, "delete", "ec2nodeclasses", ""},
	{operand, "annotate", "nodepools", ""}, {operand, "finalize", "nodepools", ""},
	{operand, "report", "nodepools", ""},
	{operand, "annotate", "ec2nodeclasses", ""}, {operand, "finalize", "ec2nodeclasses", ""},
	{operand, "report", "ec2nodeclasses", ""},
	{collector, "finalize", "nodepools", ""}, {guestAdmin, "delete", "nodeclaims", ""},
	{operand, "adopt", "nodeclaims", ""},
}

// R34 to R36, R39, G3, G5: a real API server evaluates the policies, for each way to set them up: what they refuse,
// and what they let through. The operator's tests show that it keeps them in place.
func TestTheAdmissionPoliciesOfAHostedCluster(t *testing.T) {
	t.Parallel()
	guest := newGuest(t)
	for _, setup := range []struct {
		name     string
		config   merge.AdmissionConfig
		attempts []attempt
	}{
		{"an operand that shares the admin's name", merge.AdmissionConfig{}, []attempt{
			{guestAdmin, "annotate", "nodepools", ""}, {guestAdmin, "create", "nodeclaims", ""},
		}},
		{"an operand with a name of its own", merge.AdmissionConfig{Operand: operand}, []attempt{
			{guestAdmin, "create", "nodeclaims", useWrapper}, {guestAdmin, "adopt", "nodeclaims", useWrapper},
			{guestAdmin, "annotate", "nodeclaims", ""}, {operand, "create", "nodeclaims", ""},
			{collector, "finalize", "nodeclaims", ""},
		}},
		{"NodeClaims by their content", merge.AdmissionConfig{NodeClaims: merge.NodeClaimsByContent}, []attempt{
			{guestAdmin, "create", "nodeclaims", useWrapper}, {guestAdmin, "relabel", "nodeclaims", useWrapper},
			{guestAdmin, "adopt", "nodeclaims", ""}, {guestAdmin, "annotate", "nodeclaims", ""},
			{collector, "finalize", "nodeclaims", ""},
		}},
		{"the strict form", merge.AdmissionConfig{Operand: operand, Strict: true, NodeClaims: merge.NodeClaimsOpen},
			[]attempt{
				{guestAdmin, "annotate", "nodepools", useNodePool}, {guestAdmin, "finalize", "nodepools", useNodePool},
				{guestAdmin, "annotate", "ec2nodeclasses", useNodeClass}, {guestAdmin, "create", "nodeclaims", ""},
			}},
	} {
		setup.config.Operator = merge.DefaultOperator
		t.Run(setup.name, func(t *testing.T) {
			protections, err := merge.Admission(setup.config)
			if err != nil {
				t.Fatal(err)
			}
			guest.protect(t, protections)
			all := append(setup.attempts, whatAlwaysHolds...)
			for _, a := range all { // first what is refused: then the policies are in force
				if a.refused != "" {
					guest.isRefused(t, a)
				}
			}
			for _, a := range all {
				if a.refused == "" {
					if err := guest.try(t, a); err != nil {
						t.Errorf("%s cannot %s %s: %v", a.as, a.does, a.to, err)
					}
				}
			}
			guest.unprotect(t, protections)
		})
	}
}

// guest is a cluster with one object of each kind that Karpenter has, named held.
type guest struct {
	env *environment
}

func newGuest(t *testing.T) guest {
	t.Helper()
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	running, err := cluster.Start(ctx,
		cluster.Options{Binary: binary, Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	env, err := newEnvironment(ctx, running)
	if err != nil {
		t.Fatal(err)
	}
	g := guest{env}
	for _, plural := range []string{"nodepools", "ec2nodeclasses", "nodeclaims"} {
		if _, err := g.client(t, guestAdmin, plural).Create(t.Context(), guestObject(plural, "held"),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// client returns a client for a kind that acts as a user.
func (g guest) client(t *testing.T, user, plural string) dynamic.ResourceInterface {
	t.Helper()
	config := rest.CopyConfig(g.env.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	group := "karpenter.sh"
	if plural == "ec2nodeclasses" {
		group = "karpenter.k8s.aws"
	}
	return client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
}

func guestObject(plural, name string) *unstructured.Unstructured {
	manifests := map[string]string{
		"nodepools": `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","spec":{"replicas":1,"template":{"spec":{"requirements":[],
			"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"held"}}}}}`,
		"ec2nodeclasses": `{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","spec":{"role":"a","amiSelectorTerms":[{"alias":"al2@latest"}],
			"subnetSelectorTerms":[{"id":"subnet-1"}],"securityGroupSelectorTerms":[{"id":"sg-1"}]}}`,
		"nodeclaims": `{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","spec":{"requirements":[],
			"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"held"}}}`,
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(manifests[plural]), &object.Object); err != nil {
		panic(err) // one of the three above is misspelled
	}
	object.SetName(name)
	return object
}

// try makes a request and returns why it was refused.
func (g guest) try(t *testing.T, a attempt) error {
	t.Helper()
	client, dry := g.client(t, a.as, a.to), []string{metav1.DryRunAll}
	patch := func(body string, subresources ...string) error {
		_, err := client.Patch(t.Context(), "held", types.MergePatchType, []byte(body),
			metav1.PatchOptions{DryRun: dry}, subresources...)
		return err
	}
	switch a.does {
	case "create":
		_, err := client.Create(t.Context(), guestObject(a.to, "new"), metav1.CreateOptions{DryRun: dry})
		return err
	case "adopt": // create a claim that belongs to a pool, as the operand does
		claim := guestObject(a.to, "new")
		claim.SetLabels(map[string]string{"karpenter.sh/nodepool": "held"})
		claim.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "held", UID: "1"},
		})
		_, err := client.Create(t.Context(), claim, metav1.CreateOptions{DryRun: dry})
		return err
	case "respec":
		if a.to == "nodepools" {
			return patch(`{"spec":{"limits":{"nodes":"5"}}}`)
		}
		return patch(`{"spec":{"detailedMonitoring":true}}`)
	case "scale":
		return patch(`{"spec":{"replicas":7}}`, "scale")
	case "annotate":
		return patch(`{"metadata":{"annotations":{"karpenter.sh/nodepool-hash":"1"}}}`)
	case "relabel":
		return patch(`{"metadata":{"labels":{"karpenter.sh/nodepool":"other"}}}`)
	case "finalize":
		return patch(`{"metadata":{"finalizers":["karpenter.sh/termination"]}}`)
	case "report":
		return patch(
			`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"",`+
				`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
			"status")
	case "delete":
		return client.Delete(t.Context(), "held", metav1.DeleteOptions{DryRun: dry})
	}
	return fmt.Errorf("no such verb in this test: %q", a.does)
}

// isRefused waits until a request is refused with the right words: a policy is in force a moment after it was written.
func (g guest) isRefused(t *testing.T, a attempt) {
	t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(50 * time.Millisecond) {
		err := g.try(t, a)
		if err != nil && strings.Contains(err.Error(), a.refused) {
			return
		}
		if time.Now().After(deadline) || err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Fatalf("%s may %s %s, or the answer is not %q: %v", a.as, a.does, a.to, a.refused, err)
		}
	}
}

// protect writes the policies, and checks that the API server returns them as written: the operator compares them.
func (g guest) protect(t *testing.T, protections []merge.Protection) {
	t.Helper()
	for _, p := range protections {
		for _, object := range []any{p.Policy, p.Binding} {
			manifest, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			stored := map[string]any{}
			if err := json.Unmarshal([]byte(g.env.mustKubectl(t, string(manifest), "create", "-f", "-", "-o", "json")),
				&stored); err != nil {
				t.Fatal(err)
			}
			var written map[string]any
			if err := json.Unmarshal(manifest, &written); err != nil {
				t.Fatal(err)
			}
			if is, want := fmt.Sprint(stored["spec"]), fmt.Sprint(written["spec"]); is != want {
				t.Errorf("stored as\n%s, written as\n%s", is, want)
			}
		}
	}
}

func (g guest) unprotect(t *testing.T, protections []merge.Protection) {
	t.Helper()
	for _, p := range protections {
		g.env.mustKubectl(t, "", "delete", "validatingadmissionpolicybinding", p.Binding.Name)
		g.env.mustKubectl(t, "", "delete", "validatingadmissionpolicy", p.Policy.Name)
	}
	free := func(context.Context) (bool, error) {
		return g.try(t, attempt{guestAdmin, "create", "nodepools", ""}) == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, soon, true, free); err != nil {
		t.Fatalf("the policies are still in force: %v", err)
	}
}
