package main

// podToNode follows a pod that waits until it runs on a node that was launched for it.
func podToNode() picture {
	return picture{
		name: "pod-to-node", title: "How a pod becomes a node",
		about: "A pod waits. Joiner collects pods for a moment, takes a picture of the cluster and plans. The " +
			"applier checks " +
			"the plan against the cluster and writes a NodeClaim. The provider launches a machine, its node " +
			"registers and " +
			"is initialized, and kube-scheduler binds the pod. A pod that no pool can take keeps waiting and is " +
			"told why.",
		draw: func(c *canvas) {
			see := c.row(margin, top, width-margin, 36,
				cell{outside, "A pod waits", "kube-scheduler finds no node for it"},
				cell{ours, "See", "Joiner collects pods for a moment, then takes a picture of the cluster"},
				cell{ours, "Decide", "The engine plans: pool, instance types, zones, price. It writes nothing"},
				cell{ours, "Do", "The applier checks the plan against the cluster and writes a NodeClaim"})
			c.chain(see)
			y := see[0].bottom() + 64
			node := c.row(margin, y, width-margin, 36,
				cell{good, "The pod runs", "kube-scheduler binds it, and the kubelet starts it"},
				cell{ours, "Initialized", "Resources are there and startup taints are gone"},
				cell{outside, "Registered", "The kubelet starts, and the node joins the cluster"},
				cell{outside, "Launched", "The provider starts the machine. A repeated call starts no second one"})
			for i := len(node) - 1; i > 0; i-- {
				c.arrow(node[i].x, node[i].midY(), node[i-1].right(), node[i-1].midY())
			}
			c.arrow(see[3].midX(), see[3].bottom(), node[3].midX(), node[3].y)
			y = node[0].bottom() + 54
			c.write("dim", margin, y-18, textPx, "When no pool can take the pod, Decide answers with a cause "+
				"instead of a NodeClaim:")
			c.row(margin, y, width-margin, 36,
				cell{stop, "It keeps waiting, and says why",
					"The event FailedScheduling names the cause, what to do and " +
						"what ends it by itself. joinerctl explain pod says the same in full."})
			legend(c)
		},
	}
}

// legend explains the looks of boxes.
func legend(c *canvas) {
	y, x := c.low+22, margin
	for _, one := range []struct {
		kind
		means string
	}{{ours, "Joiner"}, {outside, "others: users, Kubernetes, a cloud"}, {good, "as " +
		"wanted"}, {stop, "stops, and says why"}} {
		c.swatch(one.kind, x, y)
		c.write("dim", x+30, y+13, textPx, one.means)
		x += 30 + widthOf(one.means, textPx) + 28
	}
}

// removal follows a node that is to go.
func removal() picture {
	return picture{
		name: "removal", title: "How a removal is judged",
		about: "A node has a reason to go: it is empty, drifted, underutilized, expired with care, or its " +
			"pool is above its limit. " +
			"Annotations, PodDisruptionBudgets, disruption budgets, the pause and the places of its pods are " +
			"asked. If all " +
			"agree, the node is marked, its replacement launched, and everything judged again before the node is " +
			"drained. " +
			"Otherwise it stays and says why.",
		draw: func(c *canvas) {
			c.write("dim", margin, top+8, textPx, "1. A reason to go")
			why := c.row(margin, top+18, width-margin, 16,
				cell{ours, "Empty", "No pod but those of DaemonSets"},
				cell{ours, "Drifted", "Pool or node class has changed"},
				cell{ours, "Underutilized", "Its pods would run cheaper elsewhere"},
				cell{ours, "Expired, with care", "Older than expireAfter; the pool asks for care"})
			y := why[0].bottom() + 60
			c.write("dim", margin, y-10, textPx, "2. Everything must agree")
			guards := c.row(margin, y, width-margin, 16,
				cell{ours, "do-not-disrupt", "On the node, its claim or a pod"},
				cell{ours, "Eviction", "PodDisruptionBudgets: can its pods leave, in some order?"},
				cell{ours, "Budgets and pause", "Of the pool; one switch for all pools"},
				cell{ours, "Places", "Is there room for its pods, here or on a new node?"},
				cell{ours, "Limit and saving", "Room below a hard limit; enough saved"})
			for _, one := range why {
				c.arrow(one.midX(), one.bottom(), guards[2].midX(), guards[2].y)
			}
			y = guards[0].bottom() + 62
			c.write("dim", margin+120, y-10, textPx, "3. Carefully, and each step can be taken back until the "+
				"node is deleted")
			steps := c.row(margin, y, width-margin, 36,
				cell{ours, "Mark", "The reason stands on the NodeClaim, the taint on the node"},
				cell{ours, "Replace", "What takes its place is launched and initialized first"},
				cell{ours, "Judge again", "Pods, budgets and replacement, once more"},
				cell{good, "Drain", "The claim is deleted, pods are evicted, the machine ends"})
			c.arrow(guards[2].midX(), guards[2].bottom(), steps[0].midX(), steps[0].y)
			c.chain(steps)
			y = steps[0].bottom() + 52
			no := c.row(margin, y, width-margin, 36,
				cell{stop, "The node stays, and says why", "If one of 2 says no, or judging again does: marks and " +
					"taints are taken off. " +
					"The event names the cause; joinerctl explain node says what to do."})
			c.arrow(steps[2].midX(), steps[2].bottom(), steps[2].midX(), no[0].y)
			c.caption(margin, no[0].bottom()+28, width-margin, "Not judged so: nodes that you delete, nodes "+
				"above a limit that was lowered, forceful "+
				"expiration (the default), broken nodes, and machines that the cloud takes. They drain at once.")
			legend(c)
		},
	}
}

// protection follows a request that would place a pod on a protected node.
func protection() picture {
	return picture{
		name: "control-plane-protection", title: "Control plane protection at admission",
		about: "Somebody creates, changes or binds a pod. kube-apiserver asks a door, the plugin or the " +
			"webhook. The evaluator asks " +
			"whether the pod aims at a protected node; if not, it passes. If so, both the one who places it and its " +
			"namespace must be authorized. Otherwise mode Enable refuses it, mode Inform lets it pass with a warning.",
		draw: func(c *canvas) {
			ask := c.row(margin, top, width-margin, 36,
				cell{outside, "Request", "Somebody creates, changes or binds a pod"},
				cell{ours, "Door", "A plugin in kube-apiserver, or a webhook. Both answer alike"},
				cell{ours, "Protected node?", "Does the pod aim at one: by name, by what it tolerates and selects, " +
					"or by where it is bound"},
				cell{good, "No: it passes", "Whoever sends it"})
			c.chain(ask)
			y := ask[0].bottom() + 62
			both := c.row(margin, y, width-margin, 36,
				cell{ours, "Who is authorized?", "The file of the door, the live source of the cluster, and RBAC " +
					"where the file says so"},
				cell{ours, "Yes: are both authorized?", "Whoever places the pod, and the namespace of the pod"},
				cell{good, "Both: it passes", "And runs on the protected node"})
			c.arrow(ask[2].midX(), ask[2].bottom(), both[1].midX(), both[1].y)
			c.chain(both)
			y = both[0].bottom() + 62
			modes := c.row(margin, y, width-margin, 36,
				cell{stop, "Enable", "Refused with 403: what was tried, and what to do instead"},
				cell{ours, "Inform", "It passes, with a warning, an audit entry, a count and an event"},
				cell{ours, "Disable", "Nothing happens"})
			c.write("dim", modes[0].midX()+14, y-12, textPx, "Otherwise the mode of the group decides:")
			for _, m := range modes {
				c.arrow(both[1].midX(), both[1].bottom(), m.midX(), m.y)
			}
			c.caption(margin, modes[0].bottom()+28, width-margin, "Pods that run already stay, in every mode: "+
				"joinerctl audit control-plane lists them. "+
				"Emergencies have an override of their own, which is recorded.")
			legend(c)
		},
	}
}

// launches follows a launch on EC2 through a crash.
func launches() picture {
	return picture{
		name: "ec2-launch", title: "Launch ids on EC2, and what happens after a crash",
		about: "NodeClaims that ask for the same become one launch with an id. The id is written on the " +
			"claims before CreateFleet is " +
			"called with it as client token, and is a tag of the instances. If the answer is lost, instances of " +
			"the launch " +
			"are found by the tag first, then the same call is repeated, then instances are looked for again, " +
			"and only then " +
			"a new launch is made.",
		draw: func(c *canvas) {
			way := c.row(margin, top, width-margin, 36,
				cell{ours, "One launch",
					"NodeClaims that ask for the same. Its id is a hash of their UIDs and a round"},
				cell{ours, "Write", "The id goes onto each claim: annotation joiner.sh/launch"},
				cell{outside, "CreateFleet", "The id is the client token, and a tag of the instances"},
				cell{good, "One each", "Each claim gets the provider ID of one instance"})
			c.chain(way)
			y := way[0].bottom() + 58
			lost := c.row(way[1].x, y, way[2].right(), 36,
				cell{stop, "The answer is lost, or Joiner ends", "The claims have a launch and no machine. Nobody " +
					"remembers more, " +
					"and nobody has to"})
			c.arrow(way[1].midX(), way[1].bottom(), way[1].midX(), lost[0].y)
			c.arrow(way[2].midX(), way[2].bottom(), way[2].midX(), lost[0].y)
			y = lost[0].bottom() + 62
			again := c.row(margin, y, width-margin, 36,
				cell{ours, "1. Look", "Take instances with the tag of this launch that no claim has"},
				cell{ours, "2. Repeat", "The same call: same token, same number"},
				cell{ours, "3. Look again", "For a while longer: EC2 may show instances late"},
				cell{ours, "4. Launch anew", "In another round, so with another id"})
			c.write("dim", again[0].midX()+14, y-12, textPx, "Whoever leads next goes on, in this order:")
			c.arrow(lost[0].midX(), lost[0].bottom(), again[0].midX(), again[0].y)
			c.chain(again)
			c.caption(margin, again[0].bottom()+28, width-margin, "An instance that no claim takes is ended by "+
				"the next collection, but never while a claim "+
				"of its launch still waits for a machine. Of two instances for one claim the one stays that the "+
				"claim names.")
			legend(c)
		},
	}
}
