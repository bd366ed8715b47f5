// Package v1 is the field spec.schedulingGroups of OpenShift's Scheduler as it is proposed to openshift/api:
// types, rules and texts of ours. types_scheduling_groups.go is what would be added there; scheduler.go stands for
// the kind that is there already, so that definitions can be made and tested here: with the feature gate and
// without it.
//
// +groupName=config.openshift.io
package v1
