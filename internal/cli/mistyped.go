package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/internal/nearest"
)

// subcommands checks the arguments of commands that only have subcommands. For a mistyped one the error names the
// nearest real ones (U-13).
func subcommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names, others []string
	for _, other := range command.Commands() {
		if other.IsAvailableCommand() {
			names, others = append(names, other.Name()), append(others, other.Aliases...)
		}
	}
	text := fmt.Sprintf("there is no command %q in %s", args[0], command.CommandPath())
	if near := cmp.Or(nearest.Of(args[0], names), nearest.Of(args[0], others)); near != "" {
		return errors.New(text + nearest.Meant(near))
	}
	return fmt.Errorf("%s: it must be one of %s", text, strings.Join(names, ", "))
}

// exactlyOne checks the arguments of commands about one object.
func exactlyOne(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one, not %d: %s %s", len(args), command.Parent().CommandPath(), command.Use)
	}
	return nil
}

// mistypedFlag adds the nearest real flag to an error about an unknown flag.
func mistypedFlag(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if before := command.Flags().Args(); command.HasSubCommands() && len(before) > 0 {
		return subcommands(command, before) // a flag of an unknown command
	}
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := nearest.Of(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
		return fmt.Errorf("%w%s", err, nearest.Meant("--"+near))
	}
	return fmt.Errorf("%w: see %s --help", err, command.CommandPath())
}
