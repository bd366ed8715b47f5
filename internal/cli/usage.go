package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage prints how to call a command: its own flags first, then shared flags in groups (U-13).
func usage(command *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if command.Runnable() && !command.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s\n", command.UseLine())
	} else {
		fmt.Fprintf(&b, "  %s COMMAND\n", command.CommandPath())
	}
	if command.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", command.Example)
	}
	if command.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, other := range command.Commands() {
			if other.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s  %s\n", command.NamePadding(), other.Name(), other.Short)
			}
		}
	}
	groups := map[string]*pflag.FlagSet{}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		group := ""
		if given := flag.Annotations[groupKey]; len(given) > 0 {
			group = given[0]
		}
		if groups[group] == nil {
			groups[group] = pflag.NewFlagSet("", pflag.ContinueOnError)
		}
		groups[group].AddFlag(flag)
	})
	for _, group := range []string{"", groupOutput, groupConnection} {
		title := group
		if group == "" {
			title = "Flags"
		}
		if flags := groups[group]; flags != nil && flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", title, flags.FlagUsages())
		}
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun %s COMMAND --help for more about a command.\n", command.CommandPath())
	}
	_, err := fmt.Fprint(command.OutOrStderr(), b.String())
	return err
}
