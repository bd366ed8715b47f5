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

// Line is the request of the user, or of another one.
func (s Step) Line(user string) string { return user + " " + s.Request }

// aim is what pods of the platform say to come to a control plane node. Manifests differ in which of both roles
// they tolerate, and many tolerate everything.
const aim = " tolerate=node-role.kubernetes.io/master:NoSchedule" +
	" tolerate=node-role.kubernetes.io/control-plane:NoSchedule" +
	" select=node-role.kubernetes.io/control-plane="

// Replay is how the pods of a component come to a node: for each way the creation of a pod of its own, with the
// name before it, and its binding where the scheduler binds it.
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

// user is an actor in the language of scripts.
func user(actor string) string {
	if strings.Contains(actor, "/") {
		return "sa:" + actor
	}
	return actor
}
