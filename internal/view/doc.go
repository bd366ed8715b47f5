// Package view makes the answers that people get: why a pod waits, in one sentence, with what can be done about it.
// The command line prints them, and documents list them. So a cause has the same text everywhere (U-15).
//
// It is pure: engine values in, values with fields out. Its names in JSON are an API: fields are added, not changed
// (U-29).
package view
