package cli

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program is the name of the program in all texts.
const program = "joinerctl"

// typedCommand matches the program's name followed by one of our commands, as in remedies and examples. It does not
// match the name in paths, file names and names of objects.
var typedCommand = regexp.MustCompile(`(^|[^-./\w])joinerctl( (?:COMMAND|audit|completion|console|dump|explain|headroom|help|` +
	`history|migrate|pause|policy|replay|resume|simulate|status|takeover|top|version)\b)`)

// called is how the user calls the program.
func (c Config) called() string {
	if c.Called == "" {
		return program
	}
	return c.Called
}

// renamed replaces joinerctl in a text by what the user types. Answers for programs stay as they are: their fields are
// an API.
func (c Config) renamed(text string) string {
	if c.Called == "" {
		return text
	}
	return typedCommand.ReplaceAllString(text, "${1}"+c.Called+"${2}")
}

// rename does so in the help of a command and of its subcommands.
func (c Config) rename(command *cobra.Command) {
	if c.Called == "" {
		return
	}
	if command.Name() == program {
		if command.Annotations == nil {
			command.Annotations = map[string]string{}
		}
		command.Annotations[cobra.CommandDisplayNameAnnotation] = c.Called
	}
	command.Short, command.Long = c.renamed(command.Short), c.renamed(command.Long)
	command.Example = c.renamed(command.Example)
	for _, flags := range []*pflag.FlagSet{command.Flags(), command.PersistentFlags()} {
		flags.VisitAll(func(flag *pflag.Flag) { flag.Usage = c.renamed(flag.Usage) })
	}
	for _, below := range command.Commands() {
		c.rename(below)
	}
}
