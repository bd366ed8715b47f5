// Package allocatable holds nodes of EC2 to what was planned with them: user data is read as the images of AL2023 and
// Bottlerocket read it, and the code of the kubelet, linked in from the release that this module depends on, says what
// such a node has left for pods (E-22). It has tests only.
//
// What the images add to user data stands in images_test.go, as facts of nodeadm (awslabs/amazon-eks-ami, its kubelet
// package) and of Bottlerocket's settings; no image was started.
package allocatable
