// Package launch decides what is asked of EC2 for a launch, and what its answer means (E-27, E-28, E-41, E-42). It is
// pure: whoever calls EC2 sends what it says. Launch templates are made by package template.
//
//   - [Choose] picks the capacity type and the offerings of a launch.
//   - [Fleet] is the request, [Cut] what EC2 takes of its pools.
//   - [Read] says which machines came and what could not be had.
//
// Source: the EC2 API reference (CreateFleet) and its quotas for fleets of type instant.
package launch
