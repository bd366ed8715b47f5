// Package readmodel makes what a console shows of a cluster (U-08, U-41): totals, what needs attention, pools, nodes
// and waiting pods, each with the cause that package view says. It is made of the engine's picture and of its last
// plan, never of API objects, and holds the names of things as data.
//
// It is pure: engine values in, values with fields out. Its names in JSON are an API: fields are added, not changed.
package readmodel
