// Package launch builds the request to EC2 for a launch, and interprets the answer (E-27, E-28, E-41, E-42). It is
// pure: callers send the request. Package template makes the launch templates.
//
//   - [Choose] picks the capacity type and the offerings of a launch.
//   - [Fleet] builds the request; [Cut] reduces its pools to what EC2 accepts.
//   - [Read] returns the machines of the answer and what was refused.
//
// Source: the EC2 API reference (CreateFleet) and its quotas for fleets of type instant.
package launch
