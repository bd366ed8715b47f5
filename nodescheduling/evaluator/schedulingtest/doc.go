// Package schedulingtest is the language of the scripts in ../../test/testdata (docs/scripts.md): a small cluster in a
// few lines, and requests with their answers. Every door of the policy runs the same scripts. A [Door] answers with
// what a client and the audit log see, so that doors can be compared.
//
// Start with [World.Run].
package schedulingtest
