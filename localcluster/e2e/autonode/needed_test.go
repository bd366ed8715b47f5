package autonode

import (
	"errors"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/rights"
)

// rightsAreNeeded reports the rights of the operator that no request of all tests needed (U-11), in either cluster.
func (f *fixture) rightsAreNeeded() error {
	guest, err := charts.GuestRules(charts.Full()...)
	approval, err2 := charts.ApprovalRules()
	management, err3 := charts.ManagementRules()
	hosted, err4 := charts.HostedRules()
	secrets, err5 := charts.Files().ReadFile(charts.Operator + "/rules/userdata-secrets.yaml")
	inGuest, inManagement := rights.Use{}, rights.Use{}
	if err := errors.Join(err, err2, err3, err4, err5,
		inGuest.Add(f.guest.Cluster.AuditLog(), operatorUser, "joiner-operator"),
		inManagement.Add(f.mgmt.Cluster.AuditLog(), managementUser, "joiner-operator")); err != nil {
		return err
	}
	return errors.Join(rights.AllNeeded(inGuest, operatorUser, spareInGuest(), guest, approval),
		rights.AllNeeded(inManagement, managementUser, spareInManagement(), management, hosted, secrets))
}

// spareInGuest returns the rights in the hosted cluster that no request of these tests needs, each with the reason.
func spareInGuest() map[rights.Right]string {
	const group = "karpenter.hypershift.openshift.io"
	spare := map[rights.Right]string{
		"approve signers.certificates.k8s.io": "the API server asks for it when a CertificateSigningRequest is approved",
		"create openshiftec2nodeclasses." + group: "no cluster here lacks a default class: " +
			"TestA32_TheDefaultClassFollowsTheHostedControlPlane",
		"patch events.events.k8s.io": rights.ByChance +
			"an event that is repeated within minutes, word for word, is counted",
		"update openshiftec2nodeclasses." + group + "/finalizers": owns, "update openshiftnodepools." + group +
			"/finalizers": owns,
	}
	for _, kind := range []string{"ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh",
		"nodepools.karpenter.sh", "nodes", "openshiftec2nodeclasses." + group, "openshiftnodepools." + group,
		"validatingadmissionpolicies.admissionregistration.k8s.io",
		"validatingadmissionpolicybindings.admissionregistration.k8s.io"} {
		spare["list "+rights.Right(kind)] = rights.ByChance +
			"an API server is asked for lists where a watch that begins with one fails"
	}
	return spare
}

const owns = "the admission plugin OwnerReferencesPermissionEnforcement asks for it, where it is on"

// spareInManagement returns those in the management cluster: the verbs that the design gives the Role (R41).
func spareInManagement() map[rights.Right]string {
	const design = "the Role is exactly the one of the design: TestTheRoleIsExactlyTheOneOfTheSource"
	return map[rights.Right]string{
		"get autonodepolicies.karpenter.hypershift.openshift.io":           design,
		"update autonodepolicies.karpenter.hypershift.openshift.io/status": design,
	}
}
