// Package placingtest starts real control planes that the node scheduling policy guards, for tests: through the
// admission plugin or through joiner-webhook, which must answer alike. A [Guarded] cluster has the people, the
// namespaces and, if wanted, the nodes of package placing. The methods that take a test send requests and compare
// answers.
//
// The binaries come from the environment: see [Start].
package placingtest
