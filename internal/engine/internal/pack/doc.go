// Package pack places pending pods: first on capacity that exists or is on its way, then on nodes it plans (P-23). It
// decides nothing about disruption, reads nothing but its input and imports the standard library only.
//
// # A round
//
// [Solve] takes a snapshot and some of its pending pods, and returns a plan. Follow two pods in this cluster:
//
//	type m5.large   cpu=2 mem=8Gi  zones=a,b od=0.096
//	type m5.xlarge  cpu=4 mem=16Gi zones=a,b od=0.192
//	pool default
//	node n1         type=m5.large zone=a pool=default
//	pod old         cpu=1500m node=n1
//	pod web-0..1    cpu=1 need=zone=b
//
// newSolver makes a bin of each node that pods could go to (type existing). It also prepares the pool (type pool):
// which offers of the catalogue its requirements leave, and what its DaemonSets will take of each. The room that is
// left beside these is worked out when a new node is first asked for (uneven.go). An offer is an instance type in a
// zone with one capacity type. Sets of offers are bit sets in the order of price.
//
// The two pods share one shape (cluster.Shape), since they ask for the same. For a shape and a pool the round finds
// the ways: the offers that a new node may have, for each alternative of the pod's node selection. Here there is one
// way, the two offers in zone b.
//
// Then pods are placed. n1 refuses them: it has half a core left. So a node is planned (type planned). It begins with
// all offers of the pool, and each pod placed on it narrows them. web-0 leaves the offers of zone b. web-1 takes the
// second core of an m5.large, which still fits. A third pod would have left only the m5.xlarge. What is left in the
// end goes on the claim, so that the provider has a choice (P-24):
//
//	launch default m5.large|m5.xlarge zone=b on-demand 0.096/h: web-0..1
//
// A bin only fills up. So a node that refuses a pod for good refuses all pods of its shape, and is not asked again
// (shape.refused). Only a few rules refuse now and may admit later, mostly constraints between pods.
//
// # Rules
//
// What keeps a pod from a place is a rule: one type in one file, and one line in the list rules. Code that places
// pods, or explains why it cannot, goes through this list and knows no rule by name.
//
//	blockedRule      blocked.go     something must come first, such as a volume
//	deviceRule       devices.go     ResourceClaims: on existing nodes only
//	poolRule         ready.go       the pool launches, and for pods
//	taintRule        taints.go      taints of nodes and pools
//	offerRule        ready.go       requirements of the pool, and what is available
//	selectionRule    selection.go   node selector, node affinity, volumes: makes the ways
//	stockRule        reserved.go    reservations that are used up
//	roomRule         room.go        requests, beside what daemons take
//	attachRule       attach.go      volumes that count once on a node, however many pods use them
//	storageRule      storage.go     claims without a volume: free volumes, and the capacity that drivers have left
//	driverRule       drivers.go     CSI drivers that a pod's node must have
//	brakeRule        brake.go       no launches for a while, after launches in vain
//	passedOverRule   passedover.go  nodes that the scheduler passed over for the pod
//	daemonRule       daemons.go     daemons that must not run beside the pod
//	spotShareRule    spotshare.go   how much of a pool is spot
//	topologyRule     topology.go    spread, pod affinity and anti-affinity
//	portRule         ports.go       ports of the host
//	reservationRule  reserved.go    a node is in one reservation or in none
//	commitmentRule   commitments.go a node is on one commitment or on none
//	limitRule        limits.go      limits of pool and cluster
//	minValuesRule    minvalues.go   how much choice a claim keeps
//	preferenceRule   likings.go     what pods prefer; never in the way
//
// Every rule answers the same few questions. Does it refuse an existing node? What does it leave of a planned one?
// Which ways does it leave? What changes when pods were placed? Must pods be placed one by one because of it (ties)?
// If not, what must pods have in common to be placed together (alike)? And what does it say when a pod has no place?
// The list is in the order of explanations. A planned node goes through it in the same order, with an attempt that
// each rule narrows. Only if all rules leave something does the node become that. A rule that narrows more than it
// must has the attempt made once more (retry). For existing nodes the order does not matter.
//
// # How to add a constraint
//
// Suppose that pods may ask for watts of a node's power budget.
//
//  1. Add the field Watts to cluster.Shape, and to its key in cluster/shapes.go. One test fails while two shapes that
//     differ in it have the same key, and another while no rule reads it.
//  2. Write watts.go with wattRule. The compiler demands an answer to every question. Where the rule has nothing to
//     say, embed anyNode, anyOffer, anyPool, untied or unexplained. What it counts on a node is a field of existing
//     and of planned, set in placedOn and placedIn.
//  3. Put it into the list in rules.go, where its explanation belongs, and into the table above. A test fails while
//     the rule is not listed.
//  4. Give it a row in alone_test.go, which asks it and no other rule, and a script in internal/engine/testdata.
//
// Nothing else in this package changes: not single pods, groups, promises and replicas, and not explanations. Host
// ports are about the simplest constraint. Before there were rules, they took eleven functions in six files.
//
// # The order of pods, and prices
//
// Pods are placed by priority (solver.run). Within a priority, pods that a rule ties come one by one. Each goes to the
// existing node where least stays free (tightest.go), or else to the first planned node that takes it. Those spread
// over hostnames come last. All other pods are plain: they only need room, so groups of equal pods are packed by price
// (price.go). Package mix gets what the groups ask for, and the room and price of the offers. It says which nodes to
// plan. Pods are put on these through the rules, like any others.
//
// Where pods are tied, a second plan is made from a draft (draft.go). Package mix is then also told of zones and of
// pods that keep apart, and says which nodes there should be. Tied pods are put on these one by one, through the
// rules. The cheaper plan counts.
//
// A place that was right for a pod may be wrong once all pods are placed. The minimum of a spread moves when nodes are
// opened, daemons come first on new nodes, and a limit may have given the last node to the wrong pod. So a plan is
// tried. rounds.go makes it anew until it holds. reach.go rehearses that the scheduler can bind it in some order.
// again.go, orders.go, thrifty.go, hosts.go and even.go compare it with other tries. What pods prefer is looked at
// when all have a place (likings.go, wishes.go).
//
// # Where to read on
//
// solver.go is the round, rules.go the list. existing.go and planned.go are the two kinds of nodes, and outlook.go is
// what a planned one may become. counting.go says which nodes a spread counts, and leaving.go how pods on nodes that
// go make room for each other. result.go turns bins into a plan. fit.go and replicas.go answer two questions beside
// Solve: whether pods fit on the nodes that are there, and which nodes static pools lack. AsScheduled tells what would
// be launched if pods went to existing nodes as kube-scheduler may place them, not as planned.
package pack
