// Package template makes launch templates: everything about an EC2 instance except its type and place (E-30, E-31).
//
//   - [Content] returns the content of a template. Its name is a hash of that, so equal content has one template.
//   - [Keeper] creates the templates that launches need, and deletes those that no launch has needed for long (E-56).
//
// Nobody asks EC2 whether a template exists: it is created, and if it exists already, that is fine.
//
// Source: the EC2 API reference (CreateLaunchTemplate), and the default disks of Karpenter's image families
// (karpenter.sh, concepts, NodeClasses).
package template
