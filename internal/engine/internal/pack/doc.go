// Package pack places pending pods: first on capacity that exists or is on its way, then on nodes it plans (P-23). It
// decides nothing about disruption, reads nothing but its input and imports the standard library only.
//
// # A round
//
// [Solve] is given a snapshot and some of its pending pods, and returns a plan. Follow one pod with this cluster:
//
//	type m5.large   cpu=2 mem=8Gi  zones=a,b od=0.096
//	type m5.xlarge  cpu=4 mem=16Gi zones=a,b od=0.192
//	pool default
//	node n1         type=m5.large zone=a pool=default
//	pod old         cpu=1500m node=n1
//	pod web-0..1    cpu=1 need=zone=b
//
// newSolver makes a bin of each node that pods could go to (type existing), and prepares the pool: which offers of the
// catalogue its requirements leave, and what its DaemonSets will take of each (type pool). An offer is a type in a
// zone as one capacity type; sets of offers are bit sets in the order of price.
//
// The two pods are one shape, since they ask for the same (cluster.Shape). For a shape and a pool the round finds
// the ways: which offers a new node may have for each alternative of the pod's node selection. Here there is one way,
// the two offers in zone b.
//
// Then pods are placed. n1 refuses them: it has half a core left. So a node is planned (type planned). It begins as all
// offers of the pool, and each pod that is placed on it narrows that. web-0 leaves the offers of zone b. web-1 takes the
// second core of an m5.large, which still fits; a third pod would have left the m5.xlarge only. What is left in the
// end goes on the claim, so that the provider has a choice (P-24):
//
//	launch default m5.large|m5.xlarge zone=b on-demand 0.096/h: web-0..1
//
// A bin only fills up. So when a node refuses a pod for good, it refuses all pods of the shape, and is not asked again
// (shape.refused). Only constraints between pods may refuse now and not later.
//
// # Rules
//
// What keeps a pod from a place is a rule: one type in one file, and one line in the list rules. Whatever places pods
// or explains why it cannot goes through this list, and knows no rule by name.
//
//	blockedRule      blocked.go     something has to come first, such as a volume
//	deviceRule       devices.go     ResourceClaims: on existing nodes only
//	poolRule         ready.go       the pool launches, and for pods
//	taintRule        taints.go      taints of nodes and pools
//	offerRule        ready.go       requirements of the pool, and what is available
//	selectionRule    selection.go   node selector, node affinity, volumes: makes the ways
//	stockRule        reserved.go    reservations of which nothing is left
//	roomRule         room.go        requests, beside what daemons take
//	attachRule       attach.go      volumes that count once on a node, whoever brings them
//	storageRule      storage.go     claims that have no volume yet: free ones, and what drivers have left
//	driverRule       drivers.go     CSI drivers that pods may not be without
//	brakeRule        brake.go       launches in vain
//	passedOverRule   passedover.go  nodes that the scheduler passed over for the pod
//	daemonRule       daemons.go     daemons that must not stand beside the pod
//	spotShareRule    spotshare.go   how much of a pool is spot
//	topologyRule     topology.go    spread, pod affinity and anti-affinity
//	portRule         ports.go       ports of the host
//	reservationRule  reserved.go    a node is in one reservation or in none
//	commitmentRule   commitments.go a node is on one commitment or on none
//	limitRule        limits.go      limits of pool and cluster
//	minValuesRule    minvalues.go   how much choice a claim keeps
//	preferenceRule   likings.go     what pods would rather have; never in the way
//
// A rule answers the same few questions. Does it refuse an existing node? What does it leave of a planned one? What of
// the ways? What changes when pods were placed? Must pods be placed one by one for it (ties), and if not, what do pods
// have in common that are placed together (alike)? And what does it say when a pod has no place? The order of the list
// is the order of explanations. A planned node goes through it in the same order, with an attempt that each rule
// narrows; only when all leave something does the node become that. A rule that narrows more than it must has the
// attempt made once more (retry). For existing nodes the order does not matter.
//
// # How to add a constraint
//
// Say that pods may ask for watts of a power budget that nodes have.
//
//  1. Add the field Watts to cluster.Shape, and to its key in cluster/shapes.go. A test fails as long as two shapes that
//     differ in it have the same key, and another as long as no rule reads it.
//  2. Write watts.go with wattRule. The compiler asks for every question; embed anyNode, anyOffer, anyPool, untied or
//     unexplained for those to which it has nothing to say. What it counts on a node is a field of existing and of
//     planned, set in placedOn and placedIn.
//  3. Put it into the list in rules.go, where its explanation belongs, and into the table above. A test fails while it
//     is written and not listed.
//  4. Give it a row in alone_test.go, which asks it and no other rule, and a script in internal/engine/testdata.
//
// Nothing else in this package changes: neither single pods, groups, promises and replicas nor explanations. Before
// there were rules, the ports of the host, which are about the simplest constraint, stood in eleven functions of six files.
//
// # The order of pods, and prices
//
// Pods are placed by priority (solver.run). Within a priority those that a rule ties come one by one, on the existing node
// where least stays free (tightest.go), or else in the first planned one that takes them; those spread over hostnames
// come last. All others are plain: they only need room, so they are packed in groups of equal pods by price (price.go).
// Package mix is told what the groups ask for and what the offers have and cost, and says which nodes to plan; pods are
// put on these through the rules like any others.
//
// Where pods are tied a second plan is made from a draft (draft.go): the same mix, told of zones and of pods that keep
// apart, says which nodes there are to be, and tied pods are put on these one by one, through the rules. The cheaper
// plan counts.
//
// What one pod found may be wrong by the time that all are placed, since the minimum of a spread moves when nodes are
// opened, daemons come first on new nodes, and a limit may have given the last node to the wrong pod. So a plan is
// tried: rounds.go makes it anew until it holds, reach.go rehearses that the scheduler can bind it in some order, and
// again.go, orders.go, thrifty.go, hosts.go and even.go compare it with other tries. What pods prefer is looked at when all have a place
// (likings.go, wishes.go).
//
// # Where to read on
//
// solver.go is the round, rules.go the list. existing.go, planned.go and outlook.go are the two kinds of nodes and what
// a planned one may become. counting.go says which nodes a spread counts, leaving.go how pods on nodes that go make
// room for each other, result.go turns bins into a plan. fit.go and replicas.go are the two questions beside Solve:
// whether pods fit on what there is, and which nodes static pools lack. AsScheduled asks what would be launched if pods
// came onto existing nodes as kube-scheduler may have them, and not as planned.
package pack
