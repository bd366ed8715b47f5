package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	"github.com/joiner-autoscaler/joiner/internal/admission/suggest"
	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// suggestion is the part of the audit that suggests lists.
type suggestion struct {
	on            bool
	logs, metrics []string
}

func (s *suggestion) flags(command *cobra.Command) {
	command.Flags().BoolVar(&s.on, "suggest", false,
		"write the authorizedUsers that the cluster needs, instead of the report")
	command.Flags().StringArrayVar(&s.logs, "audit-log", nil,
		"with --suggest: file with an API server's audit log from the time in mode Inform; may be repeated")
	command.Flags().StringArrayVar(&s.metrics, "metrics-file", nil,
		"with --suggest: file with /metrics of the plugin or the webhook, to find entries that nobody uses; may be "+
			"repeated")
}

// check validates the flags.
func (s *suggestion) check() error {
	if !s.on && (len(s.logs) > 0 || len(s.metrics) > 0) {
		return errors.New("--audit-log and --metrics-file are for --suggest: give it too, or leave them out")
	}
	return nil
}

// run reads the cluster and the files, and writes the entries that they need.
func (s *suggestion) run(ctx context.Context, config Config, connection *Connection, sources evaluator.Sources,
	to *printer.Printer) error {
	found, err := readProtected(ctx, config, connection, sources)
	if err != nil {
		return err
	}
	list, err := platform.Load()
	if err != nil {
		return err
	}
	collector, err := suggest.New(suggest.Config{Sources: found.sources, Cluster: found.ports, Platform: list,
		Owner: owners(ctx, found.clients), Target: targets(found.live)})
	if err != nil {
		return err
	}
	if err := eachPod(ctx, found.clients, collector.Look); err != nil {
		return err
	}
	if err := eachWorkload(ctx, found.clients, collector.LookAtWorkload); err != nil {
		return err
	}
	if err := readEach("--audit-log", s.logs, collector.ReadAuditLog); err != nil {
		return err
	}
	if err := readEach("--metrics-file", s.metrics, collector.ReadMetrics); err != nil {
		return err
	}
	made, err := collector.Report()
	if err != nil {
		return err
	}
	return report(config.Out, to, suggestionAnswer{typed: ofKind("ControlPlaneSuggestion"), Report: made}, "")
}

// readEach opens each file and calls read.
func readEach(flag string, names []string, read func(io.Reader) error) error {
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		err = errors.Join(read(file), file.Close())
		if err != nil {
			return fmt.Errorf("%s %s: %w", flag, name, err)
		}
	}
	return nil
}

// targets says where the entries of a group belong: in the live source if that knows the group, else in the file.
func targets(live audit.LiveConfig) func(group string) suggest.Target {
	return func(group string) suggest.Target {
		switch {
		case group != string(configv1.ControlPlane):
		case live.Source == evaluator.FromScheduler:
			return suggest.Scheduler
		case live.Source == evaluator.FromGroups:
			return suggest.Groups
		}
		return suggest.File
	}
}
