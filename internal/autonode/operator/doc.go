// Package operator enforces the AutoNodePolicy of one hosted cluster (docs/spec/autonode-policy.md). It works on two
// clusters, with a client type for each: [ManagementClient] reads the policy and writes its status, [GuestClient]
// reads what users write (wrappers: OpenshiftNodePool, OpenshiftEC2NodeClass) and writes what is made from it
// (products: NodePool, EC2NodeClass). What a policy and a wrapper come to is decided by package merge; here is when
// that may be written.
//
//	reading.go      what is known of the policy, and when that is nothing: the states of G15
//	board.go        where that hangs for the controllers
//	verdicts.go     and what they found out of each wrapper, of which the policy's Ready is made
//	controller.go   a wrapper and its product: gather, then one of orphan, retire, apply
//	foreign.go      what has no wrapper and was made past the admission policies
//	apply.go        writing a product and the status of its wrapper
//	altered.go      what of a product is not stored as it was written; pure
//	status.go       the conditions of a wrapper; pure
//	nodepool.go     NodePools, nodeclass.go EC2NodeClasses: what differs between the kinds
//	release.go      what nodes of an EC2NodeClass start with
//	nodeclassref.go which node classes a NodePool may refer to
//	policy.go       the policy's conditions, by a single writer
//	memory.go       what the operator remembers of its own writes
//	conformance.go  has everything compared with the policy
//	protection.go   the admission policies that keep others from writing products
//	owning.go       what of all this is another operator's
//	hosted.go       what a HostedControlPlane says of its cluster
//	teardown.go     taking everything away
//	handover.go     giving the cluster to another operator
//	approval.go     certificate requests of kubelets, by what package approver says; instances.go what it is told
//
// The controllers are step functions. Package app gives them their watches, and reads the policy for them.
package operator
