package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// NodeClassKind is a kind of node class.
type NodeClassKind struct {
	Group, Kind string
}

// NodeClass refers to a node class.
type NodeClass struct {
	Group, Kind, Name string
}

// label returns the label that holds the name of the node class on claims and nodes: group, slash, kind in lower case.
func (c NodeClass) label() fold.Key { return fold.Key(c.Group + "/" + strings.ToLower(c.Kind)) }

// ResolveNodeClass returns the node class that a pool is written with (G20). A nil ref means the EC2NodeClass named
// default. A reference to an OpenshiftEC2NodeClass means the EC2NodeClass of the same name. further lists more kinds
// that a pool may refer to: KWOKNodeClass of karpenter.kwok.sh, on a guest with simulated nodes. Any other kind is a
// Problem.
func ResolveNodeClass(ref *NodeClass, further ...NodeClassKind) (NodeClass, *Problem) {
	if ref == nil {
		return NodeClass{ec2Group, ec2Kind, defaultName}, nil
	}
	own, wrapper := NodeClassKind{ref.Group, ref.Kind}, NodeClassKind{wrapperGroup, wrapperKind}
	allowed := append([]NodeClassKind{{ec2Group, ec2Kind}, wrapper}, further...)
	if !slices.Contains(allowed, own) {
		names := make([]string, len(allowed))
		for i, kind := range allowed {
			names[i] = kind.Kind + " of " + kind.Group
		}
		return NodeClass{}, &Problem{ReasonInvalidNodeClassRef, "spec.template.spec.nodeClassRef",
			fmt.Sprintf("has kind %q and group %q: it must be %s", ref.Kind, ref.Group, strings.Join(names, ", or "))}
	}
	if own == wrapper {
		return NodeClass{ec2Group, ec2Kind, ref.Name}, nil
	}
	return *ref, nil
}
