// Package instancetype turns EC2's description of an instance type into labels, capacity and overhead for planning
// (E-18 to E-23). It is pure; callers ask EC2 and pass in the answers.
//
//   - [Labels] returns the labels of the type itself. Zone, capacity type and region belong to offerings.
//   - [Machine] returns what a node of a node class has and keeps for itself. The kubelet's configuration gets the
//     same numbers, so that node and plan agree.
//
// Sources: the EC2 API reference (DescribeInstanceTypes); the labels and rules of Karpenter's AWS provider as its
// documentation shows them (karpenter.sh, reference of instance types, 1.14).
package instancetype
