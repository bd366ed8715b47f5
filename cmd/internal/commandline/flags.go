package commandline

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// UnknownFlags is the flag that says how to treat unknown flags (K-02).
const UnknownFlags = "unknown-flags"

// Values of UnknownFlags.
const (
	RefuseUnknown = "refuse"
	WarnUnknown   = "warn"
)

// doubled gives known flags with a single dash their second one: Go's own flags accept both (K-01). We have no flags
// of a single letter except for help.
func doubled(flags *pflag.FlagSet, args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		rest, single := strings.CutPrefix(arg, "-")
		name, _, _ := strings.Cut(rest, "=")
		if single && len(name) > 1 && flags.Lookup(name) != nil {
			args[i] = "-" + arg
		}
	}
	return args
}

// known returns the arguments without unknown flags, if the arguments or the environment allow unknown flags;
// p.Unknown gets their names. An argument after such a flag counts as its value unless it is a flag.
func (p Program) known(flags *pflag.FlagSet, args []string, lookup func(string) (string, bool)) []string {
	if p.Unknown == nil || wanted(args, lookup) != WarnUnknown {
		return args
	}
	var rest, names []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		name, _, valued := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		flag := flags.Lookup(name)
		follows := !valued && i+1 < len(args)
		switch {
		case !strings.HasPrefix(args[i], "-") || name == "help" || name == "h" || name == "version":
			rest = append(rest, args[i])
		case flag == nil:
			names = append(names, name)
			if follows && !strings.HasPrefix(args[i+1], "-") {
				i++
			}
		case follows && flag.NoOptDefVal == "":
			rest = append(rest, args[i], args[i+1])
			i++
		default:
			rest = append(rest, args[i])
		}
	}
	if len(names) > 0 {
		p.Unknown(names)
	}
	return rest
}

// wanted returns the value of UnknownFlags before flags are parsed.
func wanted(args []string, lookup func(string) (string, bool)) string {
	value, _ := lookup(variable(UnknownFlags))
	for i, arg := range args {
		if arg == "--"+UnknownFlags && i+1 < len(args) {
			value = args[i+1]
		} else if given, so := strings.CutPrefix(arg, "--"+UnknownFlags+"="); so {
			value = given
		}
	}
	return value
}
