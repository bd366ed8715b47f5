// Package openshiftapi is what is proposed to openshift/api for the protection of control plane nodes: a
// field of Scheduler behind a feature gate, as types and tests of ours, and the definitions that are generated from
// them. README.md says where each part belongs.
package openshiftapi
