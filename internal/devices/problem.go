package devices

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// problem is what keeps pods from their devices on every node; the zero value means none.
type problem struct {
	code cause.Code
	text string
}

func troubled(code cause.Code, format string, args ...any) problem {
	return problem{code, fmt.Sprintf(format, args...)}
}

// Problem implements [cluster.Devices]. kube-scheduler would find the same problem, and wait or give up on the pod.
// The text names the object.
func (s *State) Problem(shape *cluster.Shape) (cause.Code, string) {
	for _, wanted := range shape.Claims {
		found := s.claimProblem(shape.Namespace, wanted)
		if claim := s.claims[shape.Namespace+"/"+wanted.Object]; found.code == "" && s.allocationOf(claim) == nil {
			found = s.requestsProblem(claim)
		}
		if found.code != "" {
			return found.code, found.text
		}
	}
	return "", ""
}

// claimProblem checks the claim itself.
func (s *State) claimProblem(namespace string, wanted cluster.DeviceClaim) problem {
	named := "(spec.resourceClaims " + wanted.Name + ")"
	if wanted.Object == "" && wanted.Template == "" {
		return troubled(cause.DeviceClaimInvalid,
			"its claim %s names neither a resourceClaimName nor a resourceClaimTemplateName: one of both is understood",
			named)
	}
	if wanted.Object == "" {
		return troubled(cause.DeviceClaimMissing,
			"its ResourceClaim %s is not made yet from ResourceClaimTemplate %s/%s", named, namespace, wanted.Template)
	}
	claim := s.claims[namespace+"/"+wanted.Object]
	switch {
	case claim == nil:
		return troubled(cause.DeviceClaimMissing, "ResourceClaim %s/%s %s does not exist", namespace, wanted.Object,
			named)
	case claim.DeletionTimestamp != nil:
		return troubled(cause.DeviceClaimMissing, "ResourceClaim %s %s is being deleted", keyOf(claim), named)
	case wanted.Owner != "" && !ownedBy(claim, wanted.Owner):
		return troubled(cause.DeviceClaimMissing, "ResourceClaim %s %s was made for another pod", keyOf(claim), named)
	case claim.Status.Allocation != nil && len(claim.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize:
		return troubled(cause.DevicesInUse, "ResourceClaim %s %s is used by %d pods, and no more may use it",
			keyOf(claim), named, len(claim.Status.ReservedFor))
	}
	return problem{}
}

func ownedBy(claim *resourcev1.ResourceClaim, uid string) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return owner != nil && owner.UID == types.UID(uid)
}

// ask is one request of a claim, or one of its alternatives; much is the number of devices as text.
type ask struct {
	name, class, much string
	selectors         []resourcev1.DeviceSelector
}

// asksOf returns the alternatives of a request; none for a request of an unknown kind.
func asksOf(request *resourcev1.DeviceRequest) (asks []ask) {
	if request.Exactly != nil {
		e := request.Exactly
		return []ask{{request.Name, e.DeviceClassName, much(e.AllocationMode, e.Count), e.Selectors}}
	}
	for _, sub := range request.FirstAvailable {
		asks = append(asks, ask{request.Name + "/" + sub.Name, sub.DeviceClassName,
			much(sub.AllocationMode, sub.Count), sub.Selectors})
	}
	return asks
}

func much(mode resourcev1.DeviceAllocationMode, count int64) string {
	if mode == resourcev1.DeviceAllocationModeAll {
		return "all"
	}
	return strconv.FormatInt(count, 10)
}

// requestsProblem checks the requests of a claim that is not allocated, once for each claim.
func (f *facts) requestsProblem(claim *resourcev1.ResourceClaim) problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(claim)
	if _, known := f.problems[key]; !known {
		f.problems[key] = f.findProblem(claim)
	}
	return f.problems[key]
}

func (f *facts) findProblem(claim *resourcev1.ResourceClaim) problem {
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		asks := asksOf(request)
		if len(asks) == 0 {
			return troubled(cause.DeviceClaimInvalid,
				"request %s of ResourceClaim %s is of a kind that is not known: exactly and firstAvailable are",
				request.Name, keyOf(claim))
		}
		var missing []string
		for _, a := range asks {
			found := f.askProblem(claim, a)
			if found.code != "" && found.code != cause.DevicesNotFound {
				return found
			}
			if found.code != "" {
				missing = append(missing, found.text)
			}
		}
		if len(missing) == len(asks) {
			return problem{cause.DevicesNotFound, strings.Join(missing, "; ")}
		}
	}
	return problem{}
}

// askProblem checks one alternative: whether its class exists, and whether any device passes its selectors.
func (f *facts) askProblem(claim *resourcev1.ResourceClaim, a ask) problem {
	where := fmt.Sprintf("request %s of ResourceClaim %s", a.name, keyOf(claim))
	class := f.classes[a.class]
	if class == nil {
		return troubled(cause.DeviceClassMissing, "%s wants DeviceClass %q, which does not exist", where, a.class)
	}
	where += " (DeviceClass " + a.class + ")"
	left := f.places
	if len(left) == 0 {
		return troubled(cause.DevicesNotFound, "%s: no driver publishes any device", where)
	}
	for i, selector := range append(class.Spec.Selectors[:len(class.Spec.Selectors):len(class.Spec.Selectors)],
		a.selectors...) {
		whose := "of the request"
		if i < len(class.Spec.Selectors) {
			whose = "of the class"
		}
		if selector.CEL == nil {
			return troubled(cause.DeviceClaimInvalid, "%s: selector %d %s is of a kind that is not known: cel is",
				where, i, whose)
		}
		expression := selector.CEL.Expression
		chosen := f.choose(expression)
		if chosen.wrong != "" {
			return troubled(cause.DeviceClaimInvalid, "%s: the selector %q %s is no valid CEL: %s", where, expression,
				whose, chosen.wrong)
		}
		before := left
		left = nil
		for _, id := range before {
			if failure := chosen.fails[id]; failure != "" {
				return troubled(cause.DeviceClaimInvalid,
					"%s: a selector %s fails on device %s (%s), and kube-scheduler gives up there: %s",
					where, whose, f.name(id), failure, expression)
			}
			if chosen.passes[id] {
				left = append(left, id)
			}
		}
		if len(left) == 0 {
			return troubled(cause.DevicesNotFound, "%s: no published device passes the selector %s: %s", where, whose,
				expression)
		}
	}
	return problem{}
}

// place is where a device is published.
type place struct{ slice, device int }

// choice is the result of a selector: the devices it chooses.
type choice struct {
	wrong  string // the error of the expression
	passes map[place]bool
	fails  map[place]string
}

// placesIn lists the published devices. When a driver publishes a pool again, slices of the older generation remain
// for a moment; they do not count.
func placesIn(slices []*resourcev1.ResourceSlice) (list []place) {
	type pool struct{ driver, name string }
	latest := map[pool]int64{}
	of := func(slice *resourcev1.ResourceSlice) pool { return pool{slice.Spec.Driver, slice.Spec.Pool.Name} }
	for _, slice := range slices {
		latest[of(slice)] = max(latest[of(slice)], slice.Spec.Pool.Generation)
	}
	for i, slice := range slices {
		if slice.Spec.Pool.Generation != latest[of(slice)] {
			continue
		}
		for j := range slice.Spec.Devices {
			list = append(list, place{i, j})
		}
	}
	return list
}

func (f *facts) name(p place) string {
	spec := &f.slices[p.slice].Spec
	return spec.Driver + "/" + spec.Pool.Name + "/" + spec.Devices[p.device].Name
}

// choose evaluates a selector with kube-scheduler's CEL library, once for each expression. The caller holds the lock.
func (f *facts) choose(expression string) choice {
	if known, found := f.chosen[expression]; found {
		return known
	}
	fresh := choice{passes: map[place]bool{}, fails: map[place]string{}}
	compiled := f.selectors.cache.GetOrCompile(expression)
	if compiled.Error != nil {
		fresh.wrong = strings.Join(strings.Fields(compiled.Error.Error()), " ")
	} else {
		for _, p := range f.places {
			spec := &f.slices[p.slice].Spec
			device := &spec.Devices[p.device]
			matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{Driver: spec.Driver,
				AllowMultipleAllocations: device.AllowMultipleAllocations, Attributes: device.Attributes,
				Capacity: device.Capacity})
			if err != nil {
				fresh.fails[p] = err.Error()
			} else if matches {
				fresh.passes[p] = true
			}
		}
	}
	f.chosen[expression] = fresh
	return fresh
}

// pinned says where an allocated claim can be used.
func (s *State) pinned(claim *resourcev1.ResourceClaim) string {
	allocation := s.allocationOf(claim)
	var terms []string
	for _, term := range allocation.NodeSelector.NodeSelectorTerms {
		var parts []string
		for _, e := range append(term.MatchFields[:len(term.MatchFields):len(term.MatchFields)],
			term.MatchExpressions...) {
			parts = append(parts, fmt.Sprintf("%s %s [%s]", e.Key, e.Operator, strings.Join(e.Values, " ")))
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return fmt.Sprintf("ResourceClaim %s is allocated, to nodes with %s", keyOf(claim), strings.Join(terms, " or "))
}

// Wanted implements [cluster.Devices].
func (s *State) Wanted(shape *cluster.Shape) string {
	var parts []string
	for _, claim := range s.claimsOf(shape) {
		var requests []string
		for i := range claim.Spec.Devices.Requests {
			for _, a := range asksOf(&claim.Spec.Devices.Requests[i]) {
				requests = append(requests, fmt.Sprintf("request %s (%s of DeviceClass %s)", a.name, a.much, a.class))
			}
		}
		parts = append(parts, "ResourceClaim "+keyOf(claim)+" with "+strings.Join(requests, ", "))
	}
	return strings.Join(parts, "; ")
}
