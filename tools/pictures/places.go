package main

// policy shows who writes what in which cluster.
func policy() picture {
	return picture{
		name: "autonode-policy", title: "AutoNodePolicy: two clusters, three writers",
		about: "In the management cluster the provider writes an AutoNodePolicy. joiner-operator reads it and " +
			"writes its conditions. In " +
			"the hosted cluster the user writes OpenshiftNodePools, the operator writes NodePools with the " +
			"policy in them " +
			"and keeps admission policies in force, and Joiner or Karpenter launches NodeClaims within them.",
		draw: func(c *canvas) {
			const y, left, second = top + 44, 48, 520
			provider := c.row(left, y, left+392, 0, cell{outside, "Provider", "writes what nodes of the hosted " +
				"cluster may be"})
			written := c.row(left, provider[0].bottom()+36, left+392, 0,
				cell{outside, "AutoNodePolicy default", "requirements restrict; rootVolume replaces"})
			c.arrow(left+196, provider[0].bottom(), left+196, written[0].y)
			operator := c.row(left, written[0].bottom()+48, left+392, 0,
				cell{ours, "joiner-operator", "reads the policy here and the wrappers there, merges both, and looks " +
					"after what it wrote"})
			c.path(left+100, written[0].bottom(), left+100, operator[0].y)
			c.path(left+292, operator[0].y, left+292, written[0].bottom())
			c.write("dim", left+112, written[0].bottom()+28, textPx, "reads")
			c.write("dim", left+304, written[0].bottom()+28, textPx, "conditions")
			back := c.row(left, operator[0].bottom()+36, left+392, 0,
				cell{good, "What the provider sees", "Ready: the policy is applied. Conforming: everything there is " +
					"as it says. " +
					"Protected: the rules of admission are in force."})
			c.arrow(left+196, operator[0].bottom(), left+196, back[0].y)

			user := c.row(second, y, second+392, 0, cell{outside, "User", "writes wrappers, with all of " +
				"Karpenter's freedom"})
			wrapper := c.row(second, user[0].bottom()+36, second+392, 0,
				cell{outside, "OpenshiftNodePool, OpenshiftEC2NodeClass", "the wrappers; their conditions say what " +
					"the policy did"})
			c.arrow(second+196, user[0].bottom(), second+196, wrapper[0].y)
			pool := c.row(second, operator[0].y, second+392, 0,
				cell{ours, "NodePool, EC2NodeClass", "the wrapper with the policy in it; admission refuses it to " +
					"all others"})
			c.arrow(operator[0].right(), operator[0].midY(), pool[0].x, operator[0].midY())
			c.across(wrapper[0].x, wrapper[0].midY(), operator[0].right(), operator[0].y+20)
			claims := c.row(second, back[0].y, second+392, 0,
				cell{good, "NodeClaims and nodes", "launched by Joiner or Karpenter; admission policies hold them " +
					"to the pool, whoever makes them"})
			c.arrow(second+196, pool[0].bottom(), second+196, claims[0].y)
			end := max(back[0].bottom(), claims[0].bottom()) + padding
			c.frame(area{left - padding, top, 392 + 2*padding, end - top}, "Management cluster")
			c.frame(area{second - padding, top, 392 + 2*padding, end - top}, "Hosted cluster")
			legend(c)
		},
	}
}

// tier is a layer of packages: what stands in it, and what it is for.
type tier struct {
	packages []string
	what     string
}

// tiers returns the packages from the programs down; a test compares them with the tree.
func tiers() []tier {
	return []tier{
		{[]string{"cmd"}, "programs: flags to configuration"},
		{[]string{"internal/app", "internal/cli"}, "put together: controllers, ports, commands"},
		{[]string{"internal/controller", "internal/autonode", "internal/webhook", "internal/whatif",
			"internal/foretell"},
			"gather, decide, act: none knows another controller"},
		{[]string{"internal/apply", "internal/provider", "internal/readmodel", "internal/dump"},
			"do: writes NodeClaims, starts machines; tells how it stands"},
		{[]string{"internal/world", "internal/view", "internal/admission", "internal/convert"},
			"see and say: events to snapshots, plans to answers"},
		{[]string{"internal/translate", "internal/condition"}, "API objects to values and back"},
		{[]string{"internal/engine"}, "decide: pure functions, standard library only"},
		{[]string{"api", "autonodepolicy", "nodescheduling"}, "types, and modules for others too: nothing of ours"},
	}
}

// layers shows the packages.
func layers() picture {
	return picture{
		name: "packages", title: "The packages, and who may know whom",
		about: "Eight layers from the programs at the top to the public types at the bottom. A package " +
			"imports only from layers " +
			"below its own; the test of imports says for each package which ones.",
		draw: func(c *canvas) {
			y := top
			for i, t := range tiers() {
				kind := ours
				if t.packages[0] == "internal/engine" {
					kind = good
				}
				if i == len(tiers())-1 {
					kind = outside
				}
				var cells []cell
				for _, name := range t.packages {
					cells = append(cells, cell{kind, name[len(prefix(name)):], ""})
				}
				boxes := c.row(margin, y+20, width-margin, 12, cells...)
				c.write("dim", margin, y+13, textPx, t.what)
				y = boxes[0].bottom() + 12
			}
			c.caption(margin, y+16, width-margin, "Imports go down, never up. internal/tidy holds each package "+
				"to its list, with the reason. Names are below internal, but for "+
				"the first and the last row.")
		},
	}
}

func prefix(name string) string {
	const internal = "internal/"
	if len(name) > len(internal) && name[:len(internal)] == internal {
		return internal
	}
	return ""
}

// readers shows where the answers of joinerctl come from.
func readers() picture {
	return picture{
		name: "who-reads-what", title: "Where the answers come from",
		about: "status, top, explain and simulate read objects of the API server with your own rights, or " +
			"files; they work without a controller. console, dump and history ask the controller that leads, " +
			"through the API server. replay reads a dump. All of them say causes in the same words.",
		draw: func(c *canvas) {
			from := c.row(margin, top, width-margin, 36,
				cell{outside, "API server", "Pods, nodes, NodePools, NodeClaims, budgets, leases: with your rights"},
				cell{outside, "Files", "Manifests, for a cluster that is not there: -f DIR"},
				cell{ours, "The controller that leads", "What it planned with and said last, in its memory"})
			y := from[0].bottom() + 66
			ask := c.row(margin, y, width-margin, 14,
				cell{ours, "status", "one screen for whoever is on call"},
				cell{ours, "top", "nodes, prices, what holds them"},
				cell{ours, "explain", "why it waits, why it stays"},
				cell{ours, "simulate", "what a change would do"},
				cell{ours, "console", "the same, in a browser"},
				cell{ours, "dump", "a decision in a file, for replay"},
				cell{ours, "history", "what was decided, and why"})
			for _, one := range ask[:4] {
				c.arrow(from[0].midX(), from[0].bottom(), one.midX(), one.y)
			}
			for _, one := range ask[4:] {
				c.arrow(from[2].midX(), from[2].bottom(), one.midX(), one.y)
			}
			y = ask[0].bottom() + 50
			word := c.row(margin, y, width-margin, 0, cell{good, "One catalogue of causes",
				"The same code, sentence and remedy in every answer, in events, conditions, metrics and logs."})
			for _, one := range ask {
				c.arrow(one.midX(), one.bottom(), one.midX(), word[0].y)
			}
			c.caption(margin, word[0].bottom()+28, width-margin, "status, top, explain and simulate take files "+
				"in place of a cluster, and need no controller. dump makes a "+
				"file of objects, too. What you may not read is named and left out.")
			legend(c)
		},
	}
}
