// Package operator enforces the AutoNodePolicy of one hosted cluster (docs/spec/autonode-policy.md). It works on two
// clusters, with a client type for each: [ManagementClient] reads the policy and writes its status, [GuestClient]
// reads what users write (wrappers: OpenshiftNodePool, OpenshiftEC2NodeClass) and writes what is made from it
// (products: NodePool, EC2NodeClass). Package merge decides what to write for a policy and a wrapper; this package
// decides when to write it.
//
//	reading.go      what is known about the policy, as the states of G15
//	board.go        shares that with the controllers
//	verdicts.go     shares what they found out about each wrapper: the policy's Ready is made from it
//	controller.go   a wrapper and its product: gather, then one of orphan, retire, apply
//	foreign.go      products without a wrapper that were made past the admission policies
//	apply.go        writing a product and the status of its wrapper
//	altered.go      fields of a product that are not stored as written; pure
//	status.go       the conditions of a wrapper; pure
//	nodepool.go     what is special about NodePools; nodeclass.go about EC2NodeClasses
//	release.go      what nodes of an EC2NodeClass start with
//	nodeclassref.go which node classes a NodePool may refer to
//	policy.go       the single writer of the policy's conditions
//	memory.go       what the operator remembers of its own writes
//	conformance.go  compares everything with the policy
//	protection.go   the admission policies that keep others from writing products
//	sight.go        whether the operator may still read the guest
//	owning.go       which parts another operator writes
//	hosted.go       what a HostedControlPlane says about its cluster
//	teardown.go     removing everything
//	handover.go     giving the cluster to another operator
//	approval.go     certificate requests of kubelets, decided by package approver; instances.go its input
//
// The controllers are step functions. Package app sets up their watches, and reads the policy for them.
package operator
