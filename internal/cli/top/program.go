package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Run shows the Model until the user quits or ctx ends. It restores the terminal.
func Run(ctx context.Context, m Model, in io.Reader, out io.Writer) error {
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	return nil
}

// Told returns what explain says about an object.
func Told(w *whatif.World, about whatif.About) string {
	var e whatif.Explained
	var err error
	switch about.Kind {
	case "Node":
		e, err = w.ExplainNode(about.Name, false)
	case "NodePool":
		e, err = w.ExplainPool(about.Name)
	default:
		e, err = w.ExplainPod(about.Namespace, about.Name, false)
	}
	var b strings.Builder
	if err == nil {
		err = e.WriteText(&b)
	}
	if err != nil {
		return err.Error()
	}
	return b.String()
}
