// Package tidy holds the rules of the repository that a compiler does not know, as tests: who may import whom, what
// pure packages must not touch, how long files and functions may be, what no file may say, and that the pages which
// explain the code name things that exist.
//
// A rule carries its reason, and a rule that no longer applies to anything fails, so that the list cannot rot.
package tidy
