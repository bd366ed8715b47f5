// Package approver decides whether to approve a kubelet's certificate request. It approves only requests of nodes that
// belong to a NodeClaim of the hosted cluster. It is pure. It leaves other requests alone, with a reason, and never
// denies one: somebody else may have to decide about it.
//
//	verdict.go   the reasons
//	parse.go     what a request asks for, read strictly
//	facts.go     what is known of the cluster, ready to be asked
//	approve.go   the order of the checks; those that a request passes by itself
//	client.go    the certificate by which a kubelet is known: its first one, and renewals
//	serving.go   the certificate that a kubelet shows to the API server
//
// The name of a node alone proves nothing. So a first certificate needs a cloud that knows the name by which the
// NodeClaim's instance joins. Whatever is unknown is a no.
package approver
