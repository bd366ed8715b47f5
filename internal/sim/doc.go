// Package sim runs the shipped controllers, unmodified, in a world of its own: a simulated API server, cloud, kubelet,
// scheduler, garbage collector and users, on a virtual clock, with faults between them.
//
// Each reconcile is a coroutine that stops at every call to the API server and the cloud. The world decides how long
// the call takes, whether it lands, whether the answer arrives, and whether the process dies there. Everything that
// happens is a function of a [Script]: actions with their times, and the seed from which the rest is drawn. [Generate]
// makes a script from a seed; [Parse] reads one from a file. Seeds are for searching, files for regression tests.
//
//	world.go     the clock, the events, the run
//	script.go    scripts: parsing, printing
//	generate.go  scripts from seeds
//	dice.go      chance: drawn from the seed and from what it is for, so that leaving one fault out changes no other
//	replica.go   a process: cache, store, controllers, queues; it starts, stalls and dies
//	call.go      a call on its way, and what becomes of it
//	queue.go     work queues like those of controller-runtime
//	cluster.go   kubelets, scheduler, workloads, garbage collection
//	daemons.go   DaemonSets, and what pods ask of a node by themselves
//	late.go      requests that land after their caller gave them up
//	limits.go    hard limits: what users do to them, and what must hold
//	keeps.go     what pools keep; commitments.go what is paid for, checks_commitments.go what must hold of it
//	reserved.go  capacity reservations, and that they are used
//	volumes.go   disks of pods; attach.go how many a node attaches
//	users.go     what the lines of a script do; machines.go those about machines
//	checks.go    what must hold at every instant (docs/invariants.md)
//	cause.go     machines are bought for pods that they help
//	liveness.go  what must hold once all faults are healed
//	reduce.go    the shortest script that still fails
//	requests.go  how many requests a run makes (B-12)
//
// Start with [Run].
package sim
