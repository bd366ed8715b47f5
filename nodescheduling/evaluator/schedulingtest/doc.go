// Package schedulingtest is the language of the scripts in ../testdata (docs/scripts.md): a small cluster in a few lines,
// and requests with their answers. Every door of the policy runs the same scripts: a [Door] is asked, and answers with
// what a client and the audit log see, so that doors can be compared.
//
// Start with [World.Run].
package schedulingtest
