package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Values of --expect.
const (
	expectSame = "same"
	expectAny  = "any"
)

// replaying holds the flags of replay.
type replaying struct {
	expect, explain string
	with            []string
	strict, script  bool
	printing        *printing
}

func replay(config Config) *cobra.Command {
	with := &replaying{}
	command := &cobra.Command{
		Use: "replay FILE", Short: "Plan again from a dump, and compare the plans",
		Args: exactlyOne,
		Long: `Plan again from a file of joinerctl dump, with the engine of this program, and compare the plans.
It asks no cluster. FILE can be - for standard input.

--with sets another value for one of the controller's flags: consolidation-min-saving,
consolidation-min-saving-percent, price-tolerance, node-overhead-price (for all NodePools),
max-nodes, or feature-gates=SpotToSpotConsolidation=true. --explain prints what explain would say
about a pod or a node of the dump.

--script prints a script of docs/scripts.md for each question that has an answer, to turn an
incident into a test. If the language cannot express something, it names that and prints no
script.

Exit code: 0 the plans are the same, or --expect any; 1 a plan differs; 2 the file cannot be read,
or the call was wrong.`,
		Example: "  joinerctl replay dump.gz\n" +
			"  joinerctl replay dump.gz --explain pod/shop/web-0\n" +
			"  joinerctl replay dump.gz --with consolidation-min-saving-percent=0",
		RunE: func(_ *cobra.Command, args []string) error { return with.run(config, args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&with.expect, "expect", expectSame, "same: exit with 1 if a plan differs; any: exit with 0")
	flags.StringVar(&with.explain, "explain", "",
		"explain pod/NAMESPACE/NAME or node/NAME, named as in the dump")
	flags.StringArrayVar(&with.with, "with", nil,
		"plan with this FLAG=VALUE of the controller; may be repeated")
	flags.BoolVar(&with.strict, "strict", false, "refuse a file with fields unknown to this program")
	flags.BoolVar(&with.script, "script", false,
		"print the dump as scripts of the engine's tests (docs/scripts.md), or name what they cannot express")
	command.MarkFlagsMutuallyExclusive("script", "explain")
	with.printing = prints(command)
	return command
}

// replayAnswer is what replay prints.
type replayAnswer struct {
	typed
	File   string      `json:"file"`
	Header dump.Header `json:"header"`
	// Now is the time that is planned for, and Settings what --with has changed.
	Now      time.Time `json:"now"`
	Settings []string  `json:"settings,omitempty"`
	// Same says that all plans are those of the file.
	Same      bool              `json:"same"`
	Plans     []replayedPlan    `json:"plans"`
	Explained *whatif.Explained `json:"explained,omitempty"`
	// Warnings are what of the file was not understood.
	Warnings []string `json:"warnings,omitempty"`

	any   bool
	names []string
}

// replayedPlan is one plan. Differences are the lines that only the file has (- ) or only this plan (+ ).
type replayedPlan struct {
	Question    string   `json:"question"`
	Same        bool     `json:"same"`
	Text        string   `json:"text"`
	Differences []string `json:"differences,omitempty"`
}

func (with *replaying) run(config Config, file string) error {
	printer, err := with.printing.printer(config)
	if err != nil {
		return err
	}
	if with.expect != expectSame && with.expect != expectAny {
		return fmt.Errorf("--expect is %q: it must be same or any", with.expect)
	}
	d, warnings, err := readDump(config, file, with.strict)
	if err != nil {
		return err
	}
	for _, setting := range with.with {
		if d, err = dump.With(d, setting); err != nil {
			return fmt.Errorf("--with: %w", err)
		}
	}
	if with.script {
		return printScript(config, d)
	}
	answer := replayAnswer{typed: ofKind("Replay"), File: file, Header: d.Header, Settings: with.with,
		Warnings: warnings, Now: time.Unix(d.Terms.Now, 0).UTC(), Same: true, any: with.expect == expectAny}
	if with.explain != "" {
		explained, err := whatif.ExplainIn(d.Snapshot, d.Terms, with.explain)
		if err != nil {
			return fmt.Errorf("--explain: %w", err)
		}
		answer.Explained = &explained
		answer.names = explained.Names()
	}
	differences, err := dump.Replay(d)
	if err != nil {
		return err
	}
	for _, planned := range d.Plans {
		p := replayedPlan{Question: string(planned.Question), Same: true, Text: planned.Plan.String()}
		at := slices.IndexFunc(differences, func(d dump.Difference) bool { return d.Question == planned.Question })
		if at >= 0 {
			p.Same, p.Text, p.Differences = false, differences[at].Now.String(), differences[at].Lines
		}
		answer.Same = answer.Same && p.Same
		answer.Plans = append(answer.Plans, p)
	}
	return report(config.Out, printer, answer, "")
}

// printScript prints a dump in the language of the engine's tests.
func printScript(config Config, d dump.Dump) error {
	text, refused, err := dump.Script(d)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		return fmt.Errorf("--script: scripts cannot say:\n%s", strings.Join(refused, "\n"))
	}
	_, err = io.WriteString(config.Out, text)
	return err
}

// readDump reads a dump from a file, or from standard input.
func readDump(config Config, file string, strict bool) (dump.Dump, []string, error) {
	in := config.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return dump.Dump{}, nil, err
		}
		defer opened.Close()
		in = opened
	}
	if in == nil {
		return dump.Dump{}, nil, errors.New("standard input is closed: name a file")
	}
	d, warnings, err := dump.Read(in, dump.Options{Strict: strict})
	if err != nil {
		return d, warnings, fmt.Errorf("%s: %w", file, err)
	}
	return d, warnings, nil
}

// Clean reports whether all plans are as expected.
func (a replayAnswer) Clean() bool { return a.Same || a.any }

// Names returns the objects of the explanation.
func (a replayAnswer) Names() []string { return a.names }

// WriteText writes it for people.
func (a replayAnswer) WriteText(out io.Writer) error {
	var b strings.Builder
	verdict := "the same plans"
	if !a.Same {
		verdict = "another plan"
	}
	fmt.Fprintf(&b, "%s: %s\n", a.File, verdict)
	fmt.Fprintf(&b, "written by %s, %s, redacted: %s, planned for %s\n", a.Header.Program, a.Header.Source,
		a.Header.Redaction, a.Now.Format(time.RFC3339))
	for _, lacks := range a.Header.NotRead {
		fmt.Fprintf(&b, "it lacks %s\n", lacks)
	}
	for _, setting := range a.Settings {
		fmt.Fprintf(&b, "with %s\n", setting)
	}
	for _, warning := range a.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for _, p := range a.Plans {
		if p.Same {
			fmt.Fprintf(&b, "%s:\n%s", p.Question, indented(p.Text))
			continue
		}
		fmt.Fprintf(&b, "%s, - in the file, + now:\n%s", p.Question, indented(strings.Join(p.Differences, "\n")+"\n"))
	}
	_, err := io.WriteString(out, b.String())
	if err == nil && a.Explained != nil {
		err = a.Explained.WriteText(out)
	}
	return err
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
