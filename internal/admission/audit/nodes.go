package audit

import (
	"fmt"
	"strings"
)

// nodeWithoutTaint is the class of a [NodeFinding].
const nodeWithoutTaint = "NodeWithoutTaint"

// NodeFinding is a node of a group without a taint: pods that may not be there are refused only when they are bound to
// it, and the scheduler may have ended other pods to make room for them.
type NodeFinding struct {
	Group string `json:"group"`
	Class string `json:"class"`
	Node  string `json:"node"`
	// Message says what was found, and Action what to do.
	Message string `json:"message"`
	Action  string `json:"action"`
}

func nodeFinding(group, node string) NodeFinding {
	return NodeFinding{Group: group, Class: nodeWithoutTaint, Node: node,
		Message: "it has no taint that keeps pods off: a pod that may not be there is refused only when it is " +
			"bound, and pods of lower priority may have ended for it before",
		Action: fmt.Sprintf(
			"kubectl taint node %s node-role.kubernetes.io/control-plane:NoSchedule, or another taint that its pods tolerate",
			node)}
}

func (f NodeFinding) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\nNode %s of group %s: %s: %s\n  -> %s\n", f.Node, f.Group, f.Class, f.Message, f.Action)
}
