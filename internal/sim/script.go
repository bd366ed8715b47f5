package sim

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mix is how often each fault occurs, as probabilities.
type Mix struct {
	Refuse, Lose, Conflict, Slow, Crash float64 // of calls to the API server; Slow and Crash also to the cloud
	CloudRefuse, CloudLose              float64
	Stall                               float64 // of events on watches
	StallMost                           time.Duration
	NeverJoin                           float64 // of machines
	BootMost, EndMost, ListLagMost      time.Duration
	Late                                float64 // of calls that make something: they land after their caller gave up
	LateMost                            time.Duration
}

// Action is a line of a script: an action on the world, and its time.
type Action struct {
	At   time.Duration
	Verb string
	Args []string
}

// String returns the line.
func (a Action) String() string {
	return strings.TrimSpace(fmt.Sprintf("at %s %s %s", a.At, a.Verb, strings.Join(a.Args, " ")))
}

// CallFault is a fault of one call.
type CallFault struct {
	Occasion string // the replica, the controller, the call and its number
	Fault    Fault
}

// Script is everything that a run depends on.
type Script struct {
	Seed  uint64
	Prose []string // comments at the top
	Mix   Mix
	Calm  bool   // only the faults in Faults and Patterns occur
	Cloud string // ec2, or "" for the simulated one
	// Tolerance is the processes' --price-tolerance, in percent.
	Tolerance int
	Actions   []Action
	Faults    map[string]Fault // by occasion
	// Patterns are faults of all calls whose occasion matches a pattern, in which * stands for any text. The first
	// match counts.
	Patterns []CallFault
	Heal     time.Duration // the time at which all faults end
}

// fields maps names in scripts to the parts of a mix.
func (m *Mix) fields() map[string]any {
	return map[string]any{
		"refuse": &m.Refuse, "lose": &m.Lose, "conflict": &m.Conflict, "slow": &m.Slow, "crash": &m.Crash,
		"cloud-refuse": &m.CloudRefuse, "cloud-lose": &m.CloudLose, "stall": &m.Stall, "stall-most": &m.StallMost,
		"late": &m.Late, "late-most": &m.LateMost, "never-join": &m.NeverJoin, "boot-most": &m.BootMost,
		"end-most": &m.EndMost, "list-lag-most": &m.ListLagMost,
	}
}

// String formats the script in the form that Parse reads.
func (s Script) String() string {
	var b strings.Builder
	for _, line := range s.Prose {
		b.WriteString("# " + line + "\n")
	}
	fmt.Fprintf(&b, "seed %d\n", s.Seed)
	fields := s.Mix.fields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch value := fields[name].(type) {
		case *float64:
			if *value != 0 {
				fmt.Fprintf(&b, "mix %s %g\n", name, *value)
			}
		case *time.Duration:
			if *value != 0 {
				fmt.Fprintf(&b, "mix %s %s\n", name, *value)
			}
		}
	}
	if s.Cloud != "" {
		b.WriteString("cloud " + s.Cloud + "\n")
	}
	if s.Tolerance != 0 {
		fmt.Fprintf(&b, "tolerance %d\n", s.Tolerance)
	}
	if s.Calm {
		b.WriteString("calm\n")
	}
	for _, action := range s.Actions {
		b.WriteString(action.String() + "\n")
	}
	for _, occasion := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(&b, "fault %s = %s\n", occasion, s.Faults[occasion])
	}
	for _, each := range s.Patterns {
		fmt.Fprintf(&b, "fault %s = %s\n", each.Occasion, each.Fault)
	}
	fmt.Fprintf(&b, "heal %s\n", s.Heal)
	return b.String()
}

// Parse parses a script. Errors name the line and what is allowed.
func Parse(text string) (Script, error) {
	s := Script{Faults: map[string]Fault{}}
	scanner := bufio.NewScanner(strings.NewReader(text))
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		if prose, is := strings.CutPrefix(line, "#"); is {
			s.Prose = append(s.Prose, strings.TrimSpace(prose))
			continue
		}
		if line == "" {
			continue
		}
		if err := s.parse(line); err != nil {
			return Script{}, fmt.Errorf("line %d: %q: %w", number, line, err)
		}
	}
	sortActions(s.Actions)
	return s, scanner.Err()
}

func (s *Script) parse(line string) error {
	words := strings.Fields(line)
	var err error
	switch {
	case words[0] == "seed" && len(words) == 2:
		s.Seed, err = strconv.ParseUint(words[1], 10, 64)
	case words[0] == "calm" && len(words) == 1:
		s.Calm = true
	case words[0] == "cloud" && len(words) == 2:
		if s.Cloud = words[1]; s.Cloud != ec2Cloud {
			err = fmt.Errorf("want cloud %s, or no such line", ec2Cloud)
		}
	case words[0] == "tolerance" && len(words) == 2:
		if s.Tolerance, err = strconv.Atoi(words[1]); err == nil && (s.Tolerance < 0 || s.Tolerance > 100) {
			err = fmt.Errorf("want percent from 0 to 100")
		}
	case words[0] == "heal" && len(words) == 2:
		s.Heal, err = time.ParseDuration(words[1])
	case words[0] == "mix" && len(words) == 3:
		switch field := s.Mix.fields()[words[1]].(type) {
		case *float64:
			*field, err = strconv.ParseFloat(words[2], 64)
		case *time.Duration:
			*field, err = time.ParseDuration(words[2])
		default:
			err = fmt.Errorf("want one of %v", slices.Sorted(maps.Keys(s.Mix.fields())))
		}
	case words[0] == "fault":
		occasion, fault, found := strings.Cut(strings.TrimSpace(line[len("fault"):]), " = ")
		if !found {
			return fmt.Errorf("want fault OCCASION = FAULT")
		}
		if strings.Contains(occasion, "*") {
			s.Patterns = append(s.Patterns, CallFault{occasion, Fault(fault)})
		} else {
			s.Faults[occasion] = Fault(fault)
		}
	case words[0] == "at" && len(words) >= 3:
		action := Action{Verb: words[2], Args: words[3:]}
		switch action.At, err = time.ParseDuration(words[1]); {
		case err != nil:
		case verbs()[action.Verb] == nil:
			err = fmt.Errorf("want one of %v", slices.Sorted(maps.Keys(verbs())))
		default:
			err = checkForm(action.Verb, action.Args)
		}
		s.Actions = append(s.Actions, action)
	default:
		err = fmt.Errorf("want seed, mix, calm, cloud, tolerance, at, fault or heal")
	}
	return err
}

// stated returns the fault that the script states for an occasion.
func (s *Script) stated(occasion string) (Fault, bool) {
	if fault, found := s.Faults[occasion]; found {
		return fault, true
	}
	for _, each := range s.Patterns {
		if matches(each.Occasion, occasion) {
			return each.Fault, true
		}
	}
	return NoFault, false
}

// matches reports whether a text matches a pattern; * stands for any text, including none.
func matches(pattern, text string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	tail, begins := strings.CutPrefix(text, head)
	if !begins || !wild {
		return begins && tail == ""
	}
	for i := range len(tail) + 1 {
		if matches(rest, tail[i:]) {
			return true
		}
	}
	return false
}
