package refusal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

func coded(code string) error { return &smithy.GenericAPIError{Code: code, Message: "because"} }

func answered(status int, err error) error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

// E-41: the meaning of the codes in the specification's table, and of errors without a code.
func TestRefusalsAreSorted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want refusal.Class
	}{
		{coded("InsufficientInstanceCapacity"), refusal.Capacity},
		{coded("SpotMaxPriceTooLow"), refusal.Capacity},
		{coded("VcpuLimitExceeded"), refusal.Quota},
		{coded("MaxFleetCountExceeded"), refusal.Quota},
		{coded("InsufficientFreeAddressesInSubnet"), refusal.Subnet},
		{coded("ReservationCapacityExceeded"), refusal.Reservation},
		{coded("InvalidLaunchTemplateName.NotFoundException"), refusal.Template},
		{coded("UnauthorizedOperation"), refusal.Rights},
		{coded("AuthFailure.ServiceLinkedRoleCreationNotPermitted"), refusal.Rights},
		{coded("RequestLimitExceeded"), refusal.Throttle},
		// EC2 throttles with 503
		{answered(http.StatusServiceUnavailable, coded("RequestLimitExceeded")), refusal.Throttle},
		{coded("InternalError"), refusal.Server},
		{coded("InvalidParameterValue"), refusal.Request},
		{coded("InvalidParameterCombination"), refusal.Request},
		{coded("InvalidAMIID.NotFound"), refusal.Request},
		{coded("InvalidAMI"), refusal.Unknown},
		{coded("SomethingNew"), refusal.Unknown},
		{answered(http.StatusBadRequest, coded("SomethingNew")), refusal.Unknown},
		{answered(http.StatusInternalServerError, coded("SomethingNew")), refusal.Server},
		{answered(http.StatusBadGateway, errors.New("<html>")), refusal.Server},
		{answered(http.StatusTooManyRequests, errors.New("slow down")), refusal.Throttle},
		{answered(http.StatusOK, &smithy.DeserializationError{Err: errors.New("XML is cut")}), refusal.Server},
		{context.DeadlineExceeded, refusal.Server},
		{fmt.Errorf("calling: %w", coded("VcpuLimitExceeded")), refusal.Quota},
	} {
		got := refusal.Of(c.err)
		if got.Class != c.want || got.Message == "" {
			t.Errorf("%v is %+v, want class %s", c.err, got, c.want)
		}
	}
	if got := refusal.Of(nil); got != (refusal.Refusal{}) {
		t.Errorf("no error is %+v", got)
	}
}

// E-41: only four classes of errors mark something as unavailable.
func TestWhichRefusalsAreOfOfferings(t *testing.T) {
	t.Parallel()
	for class, want := range map[refusal.Class]bool{
		refusal.Capacity: true, refusal.Quota: true, refusal.Subnet: true, refusal.Reservation: true,
		refusal.Template: false, refusal.Rights: false,
		refusal.Throttle: false, refusal.Server: false, refusal.Request: false, refusal.Unknown: false,
	} {
		if class.OfOfferings() != want {
			t.Errorf("%s: %t, want %t", class, !want, want)
		}
	}
}
