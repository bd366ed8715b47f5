package approver

import "fmt"

// Reason says in one word why a request is approved or left alone. The set is closed: reasons are labels of a metric.
type Reason string

// The reasons.
const (
	Approved       Reason = "Approved"
	NotPending     Reason = "NotPending"     // it has been decided
	OtherSigner    Reason = "OtherSigner"    // not a kubelet's certificate
	OutOfTime      Reason = "OutOfTime"      // too old, too early, or later than an instance needs to join
	TooManyPending Reason = "TooManyPending" // more than the cluster can have asked for
	Malformed      Reason = "Malformed"      // no certificate request as a kubelet writes it
	WrongUsages    Reason = "WrongUsages"
	WrongSubject   Reason = "WrongSubject"
	WrongRequestor Reason = "WrongRequestor"
	WrongNames     Reason = "WrongNames"    // subject alternative names that are not the node's
	NoMachine      Reason = "NoMachine"     // no NodeClaim stands for a node of that name
	Ambiguous      Reason = "Ambiguous"     // several do
	NotLaunched    Reason = "NotLaunched"   // the NodeClaim's instance is not there
	Leaving        Reason = "Leaving"       // the NodeClaim is being deleted
	Joined         Reason = "Joined"        // the node is there: it has its first certificate
	Issued         Reason = "Issued"        // another key has the NodeClaim's certificate
	Contested      Reason = "Contested"     // several keys ask for it
	NoNode         Reason = "NoNode"        // the node is not there, and has to be
	OtherInstance  Reason = "OtherInstance" // a node of that name belongs to another instance
)

// Reasons returns all reasons, in the order of their declaration: roughly that of the checks.
func Reasons() []Reason {
	return []Reason{
		Approved, NotPending, OtherSigner, OutOfTime, TooManyPending, Malformed, WrongUsages, WrongSubject,
		WrongRequestor, WrongNames,
		NoMachine, Ambiguous, NotLaunched, Leaving, Joined, Issued, Contested, NoNode, OtherInstance,
	}
}

// Verdict is the answer about one request.
type Verdict struct {
	// Approve is false for a request to be left alone.
	Approve bool
	Reason  Reason
	// Message tells people what was asked for and what is allowed.
	Message string
	// Claim is the name of the NodeClaim that the request belongs to, "" if none was found.
	Claim string
	// Node is the name of the node, "" if the request was left alone before the name was known.
	Node string
	// Wait reports whether the same request may be approved later, when more is known.
	Wait bool
}

func no(reason Reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// later is a no that time may change.
func later(reason Reason, format string, args ...any) Verdict {
	v := no(reason, format, args...)
	v.Wait = true
	return v
}

func (v Verdict) of(claim string) Verdict {
	v.Claim = claim
	return v
}
