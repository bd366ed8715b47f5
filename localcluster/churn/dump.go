package churn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dump writes the state of the cluster into a directory, and returns its path.
func (r *run) dump(ctx context.Context, report Report) (string, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("joiner-churn-%d-", r.script.Seed))
	if err != nil {
		return "", err
	}
	var failed []error
	write := func(name, content string) {
		failed = append(failed, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	faults, barren := strings.Join(report.Faults, "\n"), strings.Join(report.Barren, "\n")
	write("faults.txt", faults+"\n\nLaunched for nothing:\n"+barren+"\n")
	write("steps.txt", strings.Join(r.done, "\n")+"\n")
	write("script.txt", r.script.String())
	write("waits.txt", r.waits())
	for name, args := range map[string][]string{
		"overview.txt": {"get", "nodepools,nodeclaims,nodes,pods,pdb", "-A", "-o", "wide"},
		"nodes.yaml":   {"get", "nodepools,nodeclaims,nodes", "-o", "yaml"},
		"pods.yaml":    {"get", "pods,deployments,daemonsets,pdb,limitranges", "-A", "-o", "yaml"},
		"events.txt":   {"get", "events", "-A", "--sort-by=.lastTimestamp"},
	} {
		output, err := r.Kubectl(ctx, "", args...)
		if err != nil {
			output += "\n" + err.Error()
		}
		write(name, output)
	}
	log, err := os.ReadFile(r.JoinerLog())
	failed = append(failed, err)
	write("joiner.log", string(log))
	return dir, errors.Join(failed...)
}

// waits lists the waiting pods.
func (r *run) waits() string {
	var text strings.Builder
	now := r.clock.Now()
	for _, w := range r.judge.waits {
		fmt.Fprintf(&text, "%s waits for %.0f s of machine time, %.0f s of it feasible; "+
			"could run on: %q; node that would take it: %q; why not: %s\n",
			w.pod, (now - w.since).Seconds(), w.feasible.Seconds(), w.could, w.taken, w.why)
	}
	for name, d := range r.judge.drains {
		fmt.Fprintf(&text, "%s drains for %.0f s of machine time, stands still for %.0f s; %s\n", name,
			(now - d.since).Seconds(), (now - d.moved).Seconds(), d.blocked)
	}
	return text.String()
}

// Show returns the end of a bad report: what to look at first.
func (t *Town) Show(report Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d FAILED\n", report.Seed)
	for _, fault := range report.Faults {
		fmt.Fprintf(&text, "  %s\n", fault)
	}
	if report.Dump == "" {
		return text.String()
	}
	for _, name := range []string{"waits.txt", "overview.txt"} {
		if content, err := os.ReadFile(filepath.Join(report.Dump, name)); err == nil {
			fmt.Fprintf(&text, "--- %s\n%s", name, content)
		}
	}
	fmt.Fprintf(&text, "--- the end of joiner's log\n%s\n", t.log.end())
	fmt.Fprintf(&text, "all that was seen: %s\nagain: make churn SEED=%d\n", report.Dump, report.Seed)
	return text.String()
}
