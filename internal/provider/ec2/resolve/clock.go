package resolve

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// skewMatters is the clock error that may explain a refused signature: AWS accepts requests that are up to five
// minutes old.
const skewMatters = 4 * time.Minute

// signed is the format of a request's signing time.
const signed = "20060102T150405Z"

// signatureCodes are the codes with which services refuse a signature. Some have other meanings too, so clockText also
// compares the clocks.
var signatureCodes = []string{
	"RequestExpired", "SignatureDoesNotMatch", "InvalidSignatureException", "AuthFailure", "RequestTimeTooSkewed",
	"RequestInTheFuture",
}

// clockText returns a message if a signature was refused because of this machine's clock, with how far it is off
// (E-67); "" otherwise. AWS's answer has AWS's time, and the request has its signing time.
func clockText(err error) string {
	var response *awshttp.ResponseError
	if !slices.Contains(signatureCodes, refusal.Of(err).Code) || !errors.As(err, &response) ||
		response.Response == nil || response.Response.Response == nil || response.Response.Request == nil {
		return ""
	}
	theirs, err := http.ParseTime(response.Response.Header.Get("Date"))
	if err != nil {
		return ""
	}
	ours, err := time.Parse(signed, response.Response.Request.Header.Get("X-Amz-Date"))
	if err != nil {
		return ""
	}
	off, word := theirs.Sub(ours), "behind"
	if off < 0 {
		off, word = -off, "ahead of"
	}
	if off < skewMatters {
		return ""
	}
	return fmt.Sprintf("this machine's clock is %d min %s that of AWS: set it right",
		int(off.Round(time.Minute)/time.Minute), word)
}
