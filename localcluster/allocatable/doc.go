// Package allocatable checks nodes of EC2 against what was planned with them. It reads user data as the images of
// AL2023 and Bottlerocket do. The code of the kubelet, linked in from the release that this module depends on, then
// says what such a node leaves for pods (E-22). It has tests only.
//
// images_test.go has what the images add to user data, as facts of nodeadm (awslabs/amazon-eks-ami, its kubelet
// package) and of Bottlerocket's settings. No image was started.
package allocatable
