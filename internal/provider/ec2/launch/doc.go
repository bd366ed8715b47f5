// Package launch decides what is asked of EC2 for a launch: which capacity type, from which pools, by which launch template (E-27 to
// E-31). It is pure: whoever calls EC2 sends what it says.
//
// Source: the EC2 API reference (CreateFleet, CreateLaunchTemplate) and its quotas for fleets of type instant.
package launch
