// Package cli holds the commands of joinerctl: it reads flags, files and a cluster, asks pure packages, and prints. What it
// prints goes to the writers of Config; it never exits.
//
// Start with root.go. The exit code is that of Code.
package cli
