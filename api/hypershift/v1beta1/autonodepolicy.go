package v1beta1

import autonodev1beta1 "github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"

// The types of AutoNodePolicy stand in the module that others import; here they have the names by which Joiner
// knows all kinds of the group.
type (
	// AutoNodePolicy says what the provider of hosted clusters allows for their nodes.
	AutoNodePolicy = autonodev1beta1.AutoNodePolicy
	// AutoNodePolicyList is a list of AutoNodePolicies.
	AutoNodePolicyList = autonodev1beta1.AutoNodePolicyList
	// AutoNodePolicySpec says what is allowed.
	AutoNodePolicySpec = autonodev1beta1.AutoNodePolicySpec
	// NodePoolDefaults constrain every NodePool.
	NodePoolDefaults = autonodev1beta1.NodePoolDefaults
	// EC2NodeClassDefaults are settings of every EC2NodeClass.
	EC2NodeClassDefaults = autonodev1beta1.EC2NodeClassDefaults
	// RootVolume is the root volume of every node.
	RootVolume = autonodev1beta1.RootVolume
	// AutoNodePolicyStatus says whether the policy is applied.
	AutoNodePolicyStatus = autonodev1beta1.AutoNodePolicyStatus
)
