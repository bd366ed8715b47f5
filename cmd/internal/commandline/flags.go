package commandline

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// UnknownFlags is the flag that says what becomes of flags which a program does not have (K-02).
const UnknownFlags = "unknown-flags"

// The values of UnknownFlags.
const (
	RefuseUnknown = "refuse"
	WarnUnknown   = "warn"
)

// doubled gives flags their second dash that were written with one, as Go's own flags may be (K-01): those of the set.
// We have none of a single letter but help.
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

// known returns the arguments without flags that the program does not have, if they, or the environment, let it go on
// without: it is told their names. What follows such a flag and is none itself is taken for its value.
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

// wanted returns the value of UnknownFlags before anything is parsed.
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
