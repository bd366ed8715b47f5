// Package refusal sorts what AWS answers when it does not do what it was asked: what it means decides whether to ask
// again, to ask elsewhere, or to tell a user (E-41). It is pure.
//
// Source: the list of error codes of the EC2 API reference.
package refusal

import (
	"errors"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Class is what a refusal means.
type Class string

// The classes. Only the first four say something about offerings.
const (
	Capacity    Class = "capacity"    // AWS has none of the pool that was asked for
	Quota       Class = "quota"       // the account may have no more of a group of types
	Subnet      Class = "subnet"      // a subnet has no free address
	Reservation Class = "reservation" // a capacity reservation is used up, or has ended
	Template    Class = "template"    // a launch template is gone, or there are too many
	Rights      Class = "rights"      // the role may not do it
	Throttle    Class = "throttle"    // too many calls
	Server      Class = "server"      // trouble of AWS: whether it was done is not known
	Request     Class = "request"     // something that was asked for does not exist or does not go together
	Unknown     Class = "unknown"     // any other
)

// OfOfferings reports whether the refusal says that something cannot be had for now, and something else may.
func (c Class) OfOfferings() bool {
	return c == Capacity || c == Quota || c == Subnet || c == Reservation
}

// codes are the codes whose class is known by the whole of them.
var codes = map[string]Class{
	"InsufficientInstanceCapacity": Capacity, "InsufficientHostCapacity": Capacity,
	"InsufficientReservedInstanceCapacity": Capacity,
	"UnfulfillableCapacity":                Capacity, "Unsupported": Capacity, "SpotMaxPriceTooLow": Capacity,

	"VcpuLimitExceeded": Quota, "InstanceLimitExceeded": Quota, "MaxSpotInstanceCountExceeded": Quota,
	"MaxFleetCountExceeded": Quota,

	"InsufficientFreeAddressesInSubnet": Subnet,

	"ReservationCapacityExceeded": Reservation, "InvalidCapacityReservationState.Unavailable": Reservation,

	"InvalidLaunchTemplateName.NotFoundException": Template, "InvalidLaunchTemplateId.NotFound": Template,
	"MaxTemplateLimitExceeded": Template,

	"UnauthorizedOperation": Rights, "AccessDenied": Rights, "AccessDeniedException": Rights, "AuthFailure": Rights,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": Rights, "OptInRequired": Rights,
	"PendingVerification": Rights,

	"RequestLimitExceeded": Throttle, "Throttling": Throttle, "ThrottlingException": Throttle,
	"TooManyRequestsException": Throttle, "RequestThrottled": Throttle,

	"InternalError": Server, "InternalFailure": Server, "ServiceUnavailable": Server, "Unavailable": Server,

	"InvalidSubnetID.NotFound": Request, "InvalidGroup.NotFound": Request, "InvalidSecurityGroupID.NotFound": Request,
	"InvalidSnapshot.NotFound": Request, "InvalidBlockDeviceMapping": Request, "InvalidUserData.Malformed": Request,
	"InvalidFleetConfig": Request, "InvalidInput": Request,
}

// ClassOf returns the class of an error code of AWS.
func ClassOf(code string) Class {
	if class, known := codes[code]; known {
		return class
	}
	if strings.HasPrefix(code, "InvalidParameter") || strings.HasPrefix(code, "InvalidAMIID.") {
		return Request
	}
	return Unknown
}

// Refusal is an error of a call, sorted.
type Refusal struct {
	Class   Class
	Code    string // as AWS has it; "" when there was no answer that could be read
	Message string
}

// Of sorts the error of a call; nil gives the zero value. An error without a code is trouble on the way, so nobody
// knows what was done. So is a code that nobody knows when the status says that the server failed.
func Of(err error) Refusal {
	if err == nil {
		return Refusal{}
	}
	status := 0
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == "" {
		return Refusal{Class: byStatus(status, Server), Message: err.Error()}
	}
	refusal := Refusal{Class: ClassOf(api.ErrorCode()), Code: api.ErrorCode(), Message: api.ErrorMessage()}
	if refusal.Class == Unknown {
		refusal.Class = byStatus(status, Unknown)
	}
	return refusal
}

// byStatus returns the class that an HTTP status gives to an answer whose code says nothing.
func byStatus(status int, otherwise Class) Class {
	switch {
	case status == http.StatusTooManyRequests:
		return Throttle
	case status >= http.StatusInternalServerError:
		return Server
	}
	return otherwise
}
