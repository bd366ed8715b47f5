// Package cli holds the commands of joinerctl: it reads flags, files and a cluster, asks pure packages, and prints to
// the writers of Config. It never exits.
//
// Start with root.go. Run returns the exit code, one of the Code constants.
package cli
