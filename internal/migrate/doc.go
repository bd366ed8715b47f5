// Package migrate reports what is left of v1beta1 in a cluster or in files, and what to do about it (V-25). It is
// pure: objects in, findings out. joinerctl migrate check (package cli) reads the objects and prints the findings.
//
// Start with check.go.
package migrate
