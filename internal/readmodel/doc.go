// Package readmodel makes what a console shows of a cluster (U-08, U-41): totals, what needs attention, pools, nodes
// and waiting pods, each with the cause from package view. It uses the engine's snapshot and the last plan, never API
// objects. Names of things are data in it.
//
// It is pure: engine values in, values with fields out. Its names in JSON are an API: fields are added, not changed.
package readmodel
