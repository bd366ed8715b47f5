// Package template makes launch templates: what an instance of EC2 is like beyond its type and place (E-30, E-31).
//
//   - [Content] says what a template holds. Its name is a hash of that, so equal content has one template.
//   - [Keeper] makes the templates that launches need, and deletes those that none has needed for long (E-56).
//
// Nobody asks EC2 whether a template exists: it is made, and that it is there already is as good.
//
// Source: the EC2 API reference (CreateLaunchTemplate), and the disks that the image families of Karpenter's users
// have by default (karpenter.sh, concepts, NodeClasses).
package template
