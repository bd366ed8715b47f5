package churn

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Verb is what a step does.
type Verb string

// Verbs. Those with Any act on an object that exists when the step comes; Step.Pick says which.
const (
	Apply        Verb = "apply"
	Delete       Verb = "delete"
	DeleteAny    Verb = "delete any"
	ProtectAny   Verb = "protect any"
	InterruptAny Verb = "interrupt any"
	UnprotectAll Verb = "unprotect all nodes"
	Kill         Verb = "kill joiner"
)

// Kind is what a step with Any picks from.
type Kind string

// The kinds that users pick from.
const (
	Pod       Kind = "pod"
	Node      Kind = "node"
	NodeClaim Kind = "nodeclaim"
)

// Step is an action of users.
type Step struct {
	At      time.Duration
	Verb    Verb
	Why     string          // in the users' words
	Objects []client.Object // to apply or to delete
	Kind    Kind            // for verbs with Any
	Pick    float64         // from 0 to 1: which object
}

// Script is what users do in a seed's run.
type Script struct {
	Seed   uint64
	Prefix string // of the names of all objects
	Length time.Duration
	Steps  []Step
	Calm   []Step // end budgets and pauses after Steps; then everything has to come to rest
	End    []Step // remove all workloads after that; then every node has to go
	Gone   []Step // remove the NodePools
	// Neighbours are another program's objects in the cluster.
	Neighbours []client.Object
}

// gaps between two steps.
const (
	shortestGap = 200 * time.Millisecond
	longestGap  = 2500 * time.Millisecond
)

// Draw draws the script of a seed.
func Draw(seed uint64, length time.Duration) Script {
	s := Script{Seed: seed, Prefix: fmt.Sprintf("s%d", seed), Length: length}
	u := newUsers(seed, s.Prefix)
	s.Steps = append(s.Steps, u.begin()...)
	at := time.Duration(0)
	for i := 0; ; i++ {
		at += newDice(seed, "gap", i).between(shortestGap, longestGap)
		if at > length {
			break
		}
		for _, step := range u.step(i) {
			step.At = at
			s.Steps = append(s.Steps, step)
		}
	}
	s.Calm, s.End, s.Gone = u.calm(), u.end(), u.gone()
	if newDice(seed, "neighbours", 0).chance(0.4) {
		s.Neighbours = newNeighbours(s.Prefix)
	}
	return s
}

// String returns the script as text: one line for each step, with the objects.
func (s Script) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d, %s\n", s.Seed, s.Length)
	for _, part := range []struct {
		name  string
		steps []Step
	}{{"churn", s.Steps}, {"calm", s.Calm}, {"end", s.End}, {"gone", s.Gone}} {
		fmt.Fprintf(&text, "%s:\n", part.name)
		for _, step := range part.steps {
			fmt.Fprintf(&text, "%s\n", step)
			for _, object := range step.Objects {
				text.WriteString(manifest(object))
			}
		}
	}
	for _, object := range s.Neighbours {
		text.WriteString("a neighbour:\n" + manifest(object))
	}
	return text.String()
}

// String returns the step on one line, without its objects.
func (s Step) String() string {
	line := fmt.Sprintf("%6.1fs %s", s.At.Seconds(), s.Verb)
	if s.Kind != "" {
		line += fmt.Sprintf(" %s (%.2f)", s.Kind, s.Pick)
	}
	for _, object := range s.Objects {
		line += fmt.Sprintf(" %s/%s", strings.ToLower(object.GetObjectKind().GroupVersionKind().Kind),
			object.GetName())
	}
	return line + ": " + s.Why
}

func manifest(object client.Object) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Sprintf("    %s: %v\n", object.GetName(), err)
	}
	return "    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ") + "\n"
}
