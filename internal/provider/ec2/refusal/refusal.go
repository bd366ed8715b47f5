// Package refusal classifies errors of AWS. The class decides whether to retry, to try something else, or to tell a
// user (E-41). It is pure.
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

// The classes. Only the first four are about offerings.
const (
	Capacity    Class = "capacity"    // AWS has no capacity in the requested pool
	Quota       Class = "quota"       // the account may have no more of a group of types
	Subnet      Class = "subnet"      // a subnet has no free address
	Reservation Class = "reservation" // a capacity reservation is used up, or has ended
	Template    Class = "template"    // a launch template is gone, or there are too many
	Rights      Class = "rights"      // the role may not do it
	Throttle    Class = "throttle"    // too many calls
	Server      Class = "server"      // trouble of AWS: the result is unknown
	Request     Class = "request"     // something in the request does not exist or is contradictory
	Unknown     Class = "unknown"     // any other
)

// OfOfferings reports whether the refusal is only about the requested offerings, so that others may still be
// available.
func (c Class) OfOfferings() bool {
	return c == Capacity || c == Quota || c == Subnet || c == Reservation
}

// codes are the codes that are matched as a whole.
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

// Refusal is a classified error of a call.
type Refusal struct {
	Class   Class
	Code    string // AWS's code; "" without a readable answer
	Message string
}

// Of classifies the error of a call; nil gives the zero value. An error without a code is trouble on the way (Server):
// the result is unknown. So is an unknown code if the HTTP status says that the server failed.
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

// byStatus returns the class by the HTTP status, for an answer without a known code.
func byStatus(status int, otherwise Class) Class {
	switch {
	case status == http.StatusTooManyRequests:
		return Throttle
	case status >= http.StatusInternalServerError:
		return Server
	}
	return otherwise
}
