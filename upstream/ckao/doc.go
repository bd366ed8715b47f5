// Package ckao is what cluster-kube-apiserver-operator needs so that OpenShift's kube-apiserver protects control
// plane nodes, as text and with the rule as a function that can be read and tried. Nothing of that
// repository is in it; README.md says where each part belongs.
package ckao
