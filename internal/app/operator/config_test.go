package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

func awsOperator() Config {
	config := DefaultConfig()
	config.Namespace, config.InfraID, config.InstanceProfile, config.UserDataSecrets = "hcp-a", "infra", "nodes", true
	return config
}

// G25: a platform adds the wrappers of its node classes, and one that has none adds no controller.
func TestPlatformsDecideWhichWrappersThereAre(t *testing.T) {
	t.Parallel()
	for platforms, want := range map[string]string{
		"AWS": "OpenshiftNodePool OpenshiftEC2NodeClass", "KWOK": "OpenshiftNodePool",
		"KWOK,AWS": "OpenshiftNodePool OpenshiftEC2NodeClass",
	} {
		config := awsOperator()
		config.Platforms = strings.Split(platforms, ",")
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		kinds, err := config.kinds(operator.ManagementClient{}, operator.NewBoard(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range kinds {
			got = append(got, kind.Wrapper)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: wrappers %v, want %s", platforms, got, want)
		}
	}
}

// what is left to another operator has no controller, and takes no flag.
func TestA30_WhatIsNotOwnedHasNoController(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.Namespace, config.Own = "hcp-a", []string{operator.OwnAlongside}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	all, err := config.kinds(operator.ManagementClient{}, operator.NewBoard(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	owning, err := operator.NewOwning(config.Own)
	if err != nil {
		t.Fatal(err)
	}
	own, others := split(all)
	deps := operatorDeps{kinds: own, others: others, owning: owning, aws: true, board: operator.NewBoard()}
	var names []string
	for _, controller := range deps.controllers() {
		names = append(names, controller.Name)
	}
	const want = "protection autonodepolicy OpenshiftNodePool nodeclaimrule conformance sight"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the controllers are %s, want %s", got, want)
	}
	config.Own = []string{string(operator.PartDefaultClass)}
	if err := config.Validate(); err == nil || err.Error() != "--infra-id is missing: want the cluster's "+
		"infrastructure ID, by which its subnets and security groups are found on AWS" {
		t.Errorf("the default class alone: %v", err)
	}
}

// kinds and admission policies are divided, and what is switched off is deleted by its owner alone.
func TestA30_WhatIsWrittenIsDivided(t *testing.T) {
	t.Parallel()
	// Kinds, those of others, admission policies, those of others, unwanted ones, and all that a teardown takes away.
	for own, want := range map[string][6]int{
		operator.OwnFull: {2, 0, 2, 0, 1, 4}, operator.OwnAlongside: {1, 1, 1, 1, 1, 3},
		string(operator.PartClassRules): {0, 2, 1, 1, 0, 1},
	} {
		config := awsOperator()
		config.Own, config.ProtectNodeClaims = []string{own}, "Open"
		deps := operatorDeps{board: operator.NewBoard()}
		if err := deps.divide(config); err != nil {
			t.Fatal(err)
		}
		got := [6]int{len(deps.kinds), len(deps.others), len(deps.protections), len(deps.ofOthers),
			len(deps.unwanted), len(deps.allProtections())}
		if got != want {
			t.Errorf("%s: %v, want %v", own, got, want)
		}
	}
}

// what the HostedControlPlane says needs no flag. Its pause pauses every controller but that of the policy's
// status, and the one that asks what may be read in the guest. A controller deletes the pools together with the
// cluster.
func TestA32_TheHostedControlPlaneTakesNoFlags(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.Namespace, config.UserDataSecrets, config.InfraFrom = "hcp-a", true, InfraFromHosted
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	board := operator.NewBoard()
	board.SetHosted(operator.HostedReading{Asked: true}) // not answered: paused
	kinds, err := config.kinds(operator.ManagementClient{}, board, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	dismantles := false
	for _, controller := range (operatorDeps{kinds: kinds, aws: true, hosted: true, board: board,
		now: time.Now}).controllers() {
		dismantles = dismantles || controller.Name == Dismantling
		if controller.Name == PolicyStatus || controller.Name == Sight { // they read a guest that is not there
			continue
		}
		if result, err := controller.Reconciler.Reconcile(t.Context(), reconcile.Request{}); err != nil ||
			result.RequeueAfter != pausedAgainAfter {
			t.Errorf("%s is not paused: %v, error %v", controller.Name, result, err)
		}
	}
	if !dismantles {
		t.Error("nobody lets the pools go")
	}
	if _, err := config.instanceNames(t.Context(), board)(t.Context(), []string{"aws:///a/i-1"}); err == nil ||
		err.Error() != "the HostedControlPlane has not been read yet" {
		t.Errorf("names of instances before the cluster is known: %v", err)
	}
}

// G7: the built-in size is the one that the source's tests demand.
func TestTheDefaultsOfTheOperatorAreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	config := awsOperator()
	volume, err := config.rootVolume()
	if err != nil || volume.Size.String() != "75Gi" || volume.Type != "gp3" || !volume.Encrypted {
		t.Errorf("the root volume is %v, error %v", volume, err)
	}
	if enabled, err := config.policyEnabled(); err != nil || !enabled { // G24
		t.Errorf("the policy is enabled: %t, error %v", enabled, err)
	}
	if config.OnPolicyUnreadable != PolicyPermissive { // G15
		t.Errorf("an unreadable policy is %s", config.OnPolicyUnreadable)
	}
}

// Certificate requests concern the operator only when it is asked to, and not in a teardown.
func TestApprovalIsAnOption(t *testing.T) {
	t.Parallel()
	if DefaultConfig().ApproveKubeletCSRs {
		t.Error("it is on by default")
	}
	for _, c := range []struct {
		bootstrapper   string
		teardown, want bool
	}{{"", false, false}, {defaultNodeBootstrapper, false, true}, {defaultNodeBootstrapper, true, false}} {
		found := false
		for _, controller := range (operatorDeps{bootstrapper: c.bootstrapper, teardown: c.teardown,
			board: operator.NewBoard()}).controllers() {
			found = found || controller.Name == Approval
		}
		if found != c.want {
			t.Errorf("bootstrapper %q, teardown %t: the controller is there: %t", c.bootstrapper, c.teardown, found)
		}
	}
}

// Only what may change a decision wakes the controller of certificate requests.
func TestWhatWakesTheApproval(t *testing.T) {
	t.Parallel()
	csr := func(signer string, conditions ...certificatesv1.CertificateSigningRequestCondition) client.Object {
		return &certificatesv1.CertificateSigningRequest{
			Spec:   certificatesv1.CertificateSigningRequestSpec{SignerName: signer},
			Status: certificatesv1.CertificateSigningRequestStatus{Conditions: conditions},
		}
	}
	node := func(addresses ...corev1.NodeAddress) client.Object {
		return &corev1.Node{Status: corev1.NodeStatus{Addresses: addresses}}
	}
	claim := func(providerID string) client.Object {
		return &karpenterv1.NodeClaim{Status: karpenterv1.NodeClaimStatus{ProviderID: providerID}}
	}
	for name, c := range map[string]struct {
		wake       func(context.Context, client.Object, client.Object) []reconcile.Request
		old, fresh client.Object
		want       int
	}{
		"a request":         {kubeletRequest, nil, csr(certificatesv1.KubeletServingSignerName), 1},
		"of another signer": {kubeletRequest, nil, csr(certificatesv1.KubeAPIServerClientSignerName), 0},
		"decided long ago": {kubeletRequest, nil,
			csr(certificatesv1.KubeletServingSignerName, certificatesv1.CertificateSigningRequestCondition{}), 0},
		"gone":                    {kubeletRequest, csr(certificatesv1.KubeletServingSignerName), nil, 1},
		"a node":                  {nodeOfInstance, nil, node(), 1},
		"a heartbeat":             {nodeOfInstance, node(), node(), 0},
		"an address":              {nodeOfInstance, node(), node(corev1.NodeAddress{Address: "a"}), 1},
		"a node gone":             {nodeOfInstance, node(), nil, 0},
		"an instance":             {claimOfInstance, claim(""), claim("a"), 1},
		"another field of claims": {claimOfInstance, claim("a"), claim("a"), 0},
		"a NodeClaim":             {claimOfInstance, nil, claim(""), 0},
	} {
		if got := c.wake(t.Context(), c.old, c.fresh); len(got) != c.want {
			t.Errorf("%s: %d requests, want %d", name, len(got), c.want)
		}
	}
}
