package cli

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program is the name by which everything that is written calls it.
const program = "joinerctl"

// typedCommand is the name with a command of ours behind it, as in remedies and examples. A path, a file's name and an
// object that is called so are none.
var typedCommand = regexp.MustCompile(`(^|[^-./\w])joinerctl( (?:COMMAND|audit|completion|console|dump|explain|help|` +
	`history|migrate|pause|policy|replay|resume|simulate|status|top|version)\b| looks\b)`)

// called is how the user calls the program.
func (c Config) called() string {
	if c.Called == "" {
		return program
	}
	return c.Called
}

// renamed makes a text what the user types. Answers for programs stay as they are: their fields are an API.
func (c Config) renamed(text string) string {
	if c.Called == "" {
		return text
	}
	return typedCommand.ReplaceAllString(text, "${1}"+c.Called+"${2}")
}

// rename does that with the help of a command and of those below it.
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
