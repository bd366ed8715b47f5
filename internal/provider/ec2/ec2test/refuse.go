package ec2test

import "fmt"

// Codes of refused signatures, as EC2 spells them; other protocols have names of their own.
const (
	codeExpired        = "RequestExpired"
	codeUnknownKey     = "AuthFailure"
	codeWrongSignature = "SignatureDoesNotMatch"
	codeThrottled      = "RequestLimitExceeded"
	codeUnauthorized   = "UnauthorizedOperation"
	codeInternal       = "InternalError"
	codeBadValue       = "InvalidParameterValue"
	codeBadTogether    = "InvalidParameterCombination"
	codeMissing        = "MissingParameter"
)

// refused is an error that a client sees: status, code and text.
type refused struct {
	status        int
	code, message string
}

func (r *refused) Error() string { return r.code + ": " + r.message }

func refuse(status int, code, format string, args ...any) error {
	return &refused{status: status, code: code, message: fmt.Sprintf(format, args...)}
}
