package autonode

import (
	"errors"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/rights"
)

// rightsAreNeeded says which rights of the operator no request of all tests needed (U-11), in either cluster.
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
	return errors.Join(rights.AllNeeded(inGuest, operatorUser, nil, guest, approval),
		rights.AllNeeded(inManagement, managementUser, nil, management, hosted, secrets))
}
