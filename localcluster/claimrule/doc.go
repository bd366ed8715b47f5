// Package claimrule tests the content rule for NodeClaims with the API server's own evaluation of admission
// policies, but without an API server: thousands of policies and claims in seconds. e2e/autonode tests that a real API
// server enforces it.
package claimrule
