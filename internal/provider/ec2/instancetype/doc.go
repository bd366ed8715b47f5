// Package instancetype turns what EC2 says of an instance type into what planning counts on: labels, capacity and
// overhead (E-18 to E-23). It is pure; whoever asks EC2 hands in the answers.
//
//   - [Labels] are those of the type itself. Zone, capacity type and region belong to offerings.
//   - [Machine] says what a node of a node class has and keeps for itself. The same figures go into the kubelet's
//     configuration, so that the node and the plan agree.
//
// Sources: the EC2 API reference (DescribeInstanceTypes); the labels and rules of Karpenter's AWS provider as its
// documentation shows them (karpenter.sh, reference of instance types, 1.14).
package instancetype
