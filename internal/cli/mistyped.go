package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// subcommands is for commands that only have others below them: one that is mistyped is told with the nearest real ones
// (U-13).
func subcommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := make([]string, 0, len(command.Commands()))
	for _, other := range command.Commands() {
		if other.IsAvailableCommand() {
			names = append(names, append([]string{other.Name()}, other.Aliases...)...)
		}
	}
	text := fmt.Sprintf("there is no command %q in %s", args[0], command.CommandPath())
	if near := nearest(args[0], names); near != "" {
		return fmt.Errorf("%s; do you mean %q?", text, near)
	}
	return fmt.Errorf("%s: see %s --help", text, command.CommandPath())
}

// mistypedFlag adds the nearest real flag to an error about one that does not exist.
func mistypedFlag(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := nearest(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
		return fmt.Errorf("%w; do you mean --%s?", err, near)
	}
	return fmt.Errorf("%w: see %s --help", err, command.CommandPath())
}

// nearest returns the word that takes the fewest changes of a letter, "" when all are too far: more than a third of the
// letters changed is another word.
func nearest(word string, words []string) string {
	best, found := len(word)/3+1, ""
	for _, other := range words {
		if d := distance(word, other); d < best || d == best && found == "" {
			best, found = d, other
		}
	}
	return found
}

// distance is how many letters have to be added, dropped, changed, or swapped with their neighbour, to get from one
// word to another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
