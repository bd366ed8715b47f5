package ec2test

// services are the parts of AWS that the endpoint has, by the name in a signature's scope.
func services() map[string]service {
	parameters, queues := awsJSON{"AmazonSSM", "1.1"}, awsJSON{"AmazonSQS", "1.0"}
	prices := awsJSON{"AWSPriceListService", "1.1"}
	return map[string]service{
		"ec2":     {ec2Query{}, ec2Actions()},
		"ssm":     {parameters, ssmActions(parameters)},
		"sqs":     {queues, sqsActions(queues)},
		"pricing": {prices, pricingActions(prices)},
		"iam":     {iamQuery{}, iamActions()},
		"eks":     {restJSON{}, eksActions()},
	}
}

func ec2Actions() map[string]action {
	p := ec2Query{}
	return map[string]action{
		"DescribeInstanceTypes":          typed(p, describeInstanceTypes),
		"DescribeInstanceTypeOfferings":  typed(p, describeInstanceTypeOfferings),
		"DescribeSpotPriceHistory":       typed(p, describeSpotPriceHistory),
		"DescribeSubnets":                typed(p, describeSubnets),
		"DescribeSecurityGroups":         typed(p, describeSecurityGroups),
		"DescribeImages":                 typed(p, describeImages),
		"CreateLaunchTemplate":           typed(p, createLaunchTemplate),
		"DescribeLaunchTemplates":        typed(p, describeLaunchTemplates),
		"DescribeLaunchTemplateVersions": typed(p, describeLaunchTemplateVersions),
		"DeleteLaunchTemplate":           typed(p, deleteLaunchTemplate),
		"CreateFleet":                    typed(p, createFleet),
		"RunInstances":                   typed(p, runInstances),
		"DescribeInstances":              typed(p, describeInstances),
		"DescribeCapacityReservations":   typed(p, describeCapacityReservations),
		"DescribePlacementGroups":        typed(p, describePlacementGroups),
		"DescribeInstanceAttribute":      typed(p, describeInstanceAttribute),
		"DescribeVolumes":                typed(p, describeVolumes),
		"DescribeInstanceStatus":         typed(p, describeInstanceStatus),
		"TerminateInstances":             typed(p, terminateInstances),
		"CreateTags":                     typed(p, createTags),
		"CreateVpc":                      typed(p, createVPC),
		"DeleteVpc":                      typed(p, deleteVPC),
		"CreateSubnet":                   typed(p, createSubnet),
		"DeleteSubnet":                   typed(p, deleteSubnet),
		"CreateSecurityGroup":            typed(p, createSecurityGroup),
		"DeleteSecurityGroup":            typed(p, deleteSecurityGroup),
		"RegisterImage":                  typed(p, registerImage),
		"DeregisterImage":                typed(p, deregisterImage),
	}
}
