package class

import (
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/spec"
)

// The annotations of a class and of the claims that were launched with it, see package spec.
const (
	HashKey        = spec.HashKey
	HashVersionKey = spec.HashVersionKey
	HashVersion    = spec.HashVersion
)

// Finalizer keeps a class until no claim refers to it and everything created for it is gone (E-04). The name is
// Karpenter's.
const Finalizer = awsv1.Group + "/termination"

// Hash returns a hash that is equal for specs that lead to equal machines (E-05), see spec.Hash.
func Hash(class *awsv1.EC2NodeClass) (string, error) { return spec.Hash(class) }

// Drifted reports whether a claim was launched with a spec that leads to other machines, see spec.Drifted.
func Drifted(claim, class map[string]string) bool { return spec.Drifted(claim, class) }
