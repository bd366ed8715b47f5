// Package claimrule judges the content rule for NodeClaims by the API server's own evaluation of admission
// policies, without an API server: thousands of policies and claims in seconds. That a real one keeps it is tested in
// e2e/autonode.
package claimrule
