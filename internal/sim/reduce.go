package sim

import (
	"slices"
	"strings"
)

// maxReductions bounds the runs of a reduction.
const maxReductions = 600

// Reduce returns a short script that still violates the same check. First it states the drawn faults of calls one by
// one. Then it leaves out lines as long as the script still fails.
func Reduce(ground *Ground, script Script, result Result) Script {
	r := reducer{ground: ground, check: result.Check, about: about(result), left: maxReductions}
	stated := script
	stated.Calm = true
	stated.Faults = map[string]Fault{}
	for _, fault := range result.Faults {
		stated.Faults[fault.Occasion] = fault.Fault
	}
	if r.fails(stated) {
		script = stated
		script.Faults = r.fewerFaults(script)
	}
	script.Actions = fewer(script.Actions, func(actions []Action) bool {
		shorter := script
		shorter.Actions = actions
		return r.fails(shorter)
	})
	script.Faults = r.fewerFaults(script)
	return script
}

type reducer struct {
	ground *Ground
	check  string
	about  string
	left   int
}

// about returns what a violation is about. The check converges finds claims, pods, pools and more, and a shorter
// script should show the same.
func about(result Result) string {
	first, _, _ := strings.Cut(result.Violation, " ")
	return first
}

func (r *reducer) fails(script Script) bool {
	if r.left <= 0 {
		return false
	}
	r.left--
	result := Run(r.ground, script, nil)
	return result.Check == r.check && about(result) == r.about
}

func (r *reducer) fewerFaults(script Script) map[string]Fault {
	var list []CallFault
	for occasion, fault := range script.Faults {
		list = append(list, CallFault{occasion, fault})
	}
	slices.SortFunc(list, func(a, b CallFault) int {
		if a.Occasion < b.Occasion {
			return -1
		}
		return 1
	})
	toMap := func(list []CallFault) map[string]Fault {
		faults := map[string]Fault{}
		for _, each := range list {
			faults[each.Occasion] = each.Fault
		}
		return faults
	}
	return toMap(fewer(list, func(kept []CallFault) bool {
		shorter := script
		shorter.Faults = toMap(kept)
		return r.fails(shorter)
	}))
}

// fewer leaves out as many elements as possible, in ever smaller pieces, as long as the rest still fails.
func fewer[T any](all []T, fails func([]T) bool) []T {
	for size := max(1, len(all)/2); ; size = max(1, size/2) {
		for i := 0; i < len(all); {
			shorter := slices.Concat(all[:i], all[min(len(all), i+size):])
			if fails(shorter) {
				all = shorter
			} else {
				i += size
			}
		}
		if size == 1 {
			return all
		}
	}
}
