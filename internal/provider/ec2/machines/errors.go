package machines

import (
	"errors"
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// errUnnamed means that an answer leaves out an instance without an error, as some other servers do with unknown ones.
var errUnnamed = errors.New("the answer does not name the instance")

// isUnknown reports whether EC2 says that it does not know the instance.
func isUnknown(err error) bool {
	code := refusal.Of(err).Code
	return errors.Is(err, errUnnamed) || code == "InvalidInstanceID.NotFound" || code == "InvalidInstanceID.Malformed"
}

// faultOf tells errors that are due to one of several ids: it is unknown, or protected from termination.
func faultOf(err error) batch.Fault {
	switch refusal.Of(err).Code {
	case "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "OperationNotPermitted",
		"IncorrectInstanceState":
		return batch.OfAnID
	}
	return batch.OfTheCall
}

// Told returns an error of a call, as [provider.ErrThrottled] if it was throttled (E-60).
func Told(err error) error {
	if err != nil && refusal.Of(err).Class == refusal.Throttle && !errors.Is(err, provider.ErrThrottled) {
		return fmt.Errorf("%w: %w", provider.ErrThrottled, err)
	}
	return err
}

// EndedError means that an instance is terminated, with EC2's reason (E-45). It is a [provider.ErrNotFound].
type EndedError struct{ ID, Reason, Message string }

// Error implements error.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("%s: instance %s is terminated", provider.ErrNotFound, e.ID)
	if e.Reason != "" {
		text += ": " + e.Reason + ": " + e.Message
	}
	return text
}

// Unwrap returns provider.ErrNotFound.
func (e *EndedError) Unwrap() error { return provider.ErrNotFound }
