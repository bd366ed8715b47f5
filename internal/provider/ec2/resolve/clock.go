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

// skewMatters is from when on a clock may be why a signature is refused: AWS takes requests that are up to five
// minutes old.
const skewMatters = 4 * time.Minute

// signed is how a request says when it was signed.
const signed = "20060102T150405Z"

// signatureCodes are those by which services refuse a signature. Some are used for other trouble as well, so that the
// clocks are compared too.
var signatureCodes = []string{
	"RequestExpired", "SignatureDoesNotMatch", "InvalidSignatureException", "AuthFailure", "RequestTimeTooSkewed",
	"RequestInTheFuture",
}

// clockText says that a signature was refused because of this machine's clock, and how far that is off (E-67); "" when
// it was not. AWS's answer has its own time, and the request the one that was signed.
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
