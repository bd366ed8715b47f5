// Package test has the tests of package evaluator that need more than kube-apiserver has: the scripts (datadriven), which are the
// manual, and the laws (rapid). They are a module of their own so that the module that others take over requires neither.
package test
