// Package approver decides whether a kubelet's certificate request may be approved: those of nodes that a NodeClaim of
// the hosted cluster stands for, and no others. It is pure. A request that it does not approve is left alone, with a
// reason: it may be for somebody else to decide, so nothing is ever denied.
//
//	verdict.go   the reasons
//	parse.go     what a request asks for, read strictly
//	facts.go     what is known of the cluster, ready to be asked
//	approve.go   the order of the checks; those that a request passes by itself
//	client.go    the certificate by which a kubelet is known: its first one, and renewals
//	serving.go   the certificate that a kubelet shows to the API server
//
// What the node's name says is only worth what stands behind it, so a first certificate takes a cloud that knows the
// name by which the NodeClaim's instance joins. Whatever is not known is a no.
package approver
