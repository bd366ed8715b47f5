package class

import (
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/spec"
)

// The annotations of a class, and of the claims that were launched by it, see package spec.
const (
	HashKey        = spec.HashKey
	HashVersionKey = spec.HashVersionKey
	HashVersion    = spec.HashVersion
)

// Finalizer holds a class until no claim refers to it and what was made for it is gone (E-04). The name is
// Karpenter's.
const Finalizer = awsv1.Group + "/termination"

// Hash is equal for specs that make equal machines (E-05), see spec.Hash.
func Hash(class *awsv1.EC2NodeClass) (string, error) { return spec.Hash(class) }

// Drifted reports whether a claim was launched by a spec that makes other machines, see spec.Drifted.
func Drifted(claim, class map[string]string) bool { return spec.Drifted(claim, class) }
