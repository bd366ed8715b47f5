// Package kwok is the provider that only pretends: a machine is a Node object that KWOK keeps alive (P-51). It takes
// the place of Karpenter's own KWOK provider: same node class, labels, taint, provider IDs and catalogue file.
//
// Where the truth lies. A machine that has joined is its Node. One that is still booting (nodeRegistrationDelay) is a
// boot record, see [BootRecord]. Both carry the claim's name and UID, so nothing is kept in memory and a crash between
// any two calls loses nothing and doubles nothing: names are the claim's name, and the API server keeps names unique.
//
// What it must not do: know a Kubernetes client, start goroutines or timers, wait. It reaches the API server through
// the small port [Cluster]; whoever owns the process calls [Provider.Boot] when it asks to be called.
//
// Start with provider.go, then launch.go and boot.go. What can be launched is an [Inventory]: the default one
// (generic.go), real EC2 types and prices (ec2types.go), or a file in Karpenter's format (file.go).
package kwok
