package platform

import (
	"fmt"
	"strings"
)

// Step is a request of a replay, in the language of scripts (docs/scripts.md).
type Step struct {
	// User sends it; another user's request is the same text behind another name.
	User, Request string
}

// Line returns the request as sent by user, which may be another than s.User.
func (s Step) Line(user string) string { return user + " " + s.Request }

// aim is how pods of the platform ask for a control plane node. Manifests differ in which of the two roles they
// tolerate, and many tolerate everything.
const aim = " tolerate=node-role.kubernetes.io/master:NoSchedule" +
	" tolerate=node-role.kubernetes.io/control-plane:NoSchedule" +
	" select=node-role.kubernetes.io/control-plane="

// Replay returns how the pods of a component come to a node. For each way, it has the creation of a pod, whose name
// begins with prefix, and the binding if the scheduler binds it.
func (c Component) Replay(prefix, node string) []Step {
	var steps []Step
	for i, way := range c.Pods {
		pod := fmt.Sprintf("%s/%s-%s-%d", c.Namespace, prefix, strings.ToLower(string(way.How)), i)
		user, binds, attributes := user(way.Actor), true, aim
		switch way.How {
		case Deployment:
			attributes += " owner=ReplicaSet/own"
		case Job:
			attributes += " owner=Job/own"
		case DaemonSet:
			attributes = " tolerate=* need=name=" + node + " owner=DaemonSet/own"
		case Affinity:
			attributes = " tolerate=* need=kubernetes.io/hostname=" + node
		case NodeName:
			attributes, binds = " tolerate=* node="+node, false
		case Static:
			user, attributes, binds = "system:node:"+node, " tolerate=* node="+node+" mirror", false
		}
		steps = append(steps, Step{User: user, Request: "create pod " + pod + attributes})
		if binds {
			steps = append(steps, Step{User: scheduler, Request: "bind " + pod + " to=" + node})
		}
	}
	return steps
}

// user returns an actor in the language of scripts.
func user(actor string) string {
	if strings.Contains(actor, "/") {
		return "sa:" + actor
	}
	return actor
}
