package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/admission/suggest"
	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// printing are the flags of a command that prints an answer.
type printing struct{ flags printer.Flags }

// prints adds these flags to a command. Without forms, every form of an answer is allowed.
func prints(command *cobra.Command, forms ...string) *printing {
	p, own := &printing{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	p.flags.Add(own, forms...)
	addGroup(command, groupOutput, own)
	return p
}

// printer returns the printer that the flags ask for. Its errors name a flag.
func (p *printing) printer(config Config) (*printer.Printer, error) {
	return p.flags.Printer(printer.Surroundings{Terminal: config.OutTerminal, Plain: config.Plain,
		Codes: whatif.Codes(), Rename: config.renamed})
}

// report prints an answer, and returns errFindings if the answer is not clean.
func report(out io.Writer, to *printer.Printer, answer printer.Answer, footer string) error {
	if err := to.Print(out, answer, footer); err != nil {
		return err
	}
	if !answer.Clean() {
		return errFindings
	}
	return nil
}

// typed tells programs the type of an answer (U-29).
type typed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func ofKind(kind string) typed { return typed{APIVersion: whatif.APIVersion, Kind: kind} }

// migrationAnswer is what migrate check prints.
type migrationAnswer struct {
	typed
	migrate.Report
}

// Rows implements printer.Rowed.
func (migrationAnswer) Rows() string { return "findings" }

// Names returns the objects with findings.
func (a migrationAnswer) Names() []string {
	var names whatif.Names
	for _, f := range a.Findings {
		names.Add(f.Kind, f.Namespace, f.Name)
	}
	return names.List()
}

// auditAnswer is what audit control-plane prints.
type auditAnswer struct {
	typed
	audit.Report
}

// Rows implements printer.Rowed.
func (auditAnswer) Rows() string { return "findings" }

// Names returns the pods, workloads and nodes with findings.
func (a auditAnswer) Names() []string {
	var names whatif.Names
	for _, f := range a.Findings {
		switch {
		case f.Name != "":
			names.Add("Pod", f.Namespace, f.Name)
		case f.Owner != nil:
			names.Add(f.Owner.Kind, f.Namespace, f.Owner.Name)
		}
	}
	for _, f := range a.Bare {
		names.Add("Node", "", f.Node)
	}
	return names.List()
}

// suggestionAnswer is what audit control-plane --suggest prints. Its YAML is to be applied.
type suggestionAnswer struct {
	typed
	suggest.Report
}

// Clean reports whether nothing has to be added.
func (a suggestionAnswer) Clean() bool { return a.Complete() }

// Names returns the namespaces that entries have to be added for.
func (a suggestionAnswer) Names() []string {
	var names whatif.Names
	for _, g := range a.Groups {
		for _, e := range g.Entries {
			if namespace, is := strings.CutPrefix(e.Text, "namespace:"); is && e.Adds() {
				namespace, _, _ = strings.Cut(namespace, "@")
				names.Add("Namespace", "", namespace)
			}
		}
	}
	return names.List()
}
