// Package hypershift holds the test of docs/adoption-hypershift.md, which says where HyperShift's operator would call
// the module autonodepolicy. Nothing of that repository is here.
package hypershift
