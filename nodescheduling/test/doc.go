// Package test has the tests of package evaluator that need modules which kube-apiserver lacks: the scripts
// (datadriven), which are the manual, and the laws (rapid). It is a separate module so that the module that others
// adopt requires neither.
package test
