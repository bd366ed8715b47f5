// Package kwok is the provider of simulated machines: a machine is a Node object that KWOK keeps alive (P-51). It
// replaces Karpenter's own KWOK provider: same node class, labels, taint, provider IDs and catalogue file.
//
// State: a machine that has joined is its Node. One that is still booting (nodeRegistrationDelay) is a boot record,
// see [BootRecord]. Both have the claim's name and UID, so machines need no memory. A crash between any two calls
// loses nothing and duplicates nothing, because both have the claim's name and the API server keeps names unique.
//
// It must not know a Kubernetes client, start goroutines or timers, or wait. It reaches the API server through the
// small port [Cluster]. The program calls [Provider.Boot] at the times that it returns.
//
// Start with provider.go, then launch.go and boot.go. An [Inventory] says what can be launched: the default one
// (generic.go), real EC2 types and prices (ec2types.go), or a file in Karpenter's format (file.go).
package kwok
