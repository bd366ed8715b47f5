package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

var rewrite = flag.Bool("rewrite", false, "write the frames anew")

// at is when the cluster of the frames is looked at.
func at() time.Time { return time.Date(2026, 1, 1, 0, 12, 0, 0, time.UTC) }

// exampleLook looks at examples/status.
func exampleLook() (Look, error) {
	data, err := os.ReadFile("../../../examples/status/cluster.yaml")
	if err != nil {
		return Look{}, err
	}
	var documents []whatif.Document
	in := whatif.Surroundings{LeaseName: whatif.LeaseName}
	for i, text := range strings.Split(string(data), "\n---\n") {
		d := whatif.Document{Where: fmt.Sprintf("document %d", i+1)}
		if err := yaml.Unmarshal([]byte(text), &d.Content); err != nil {
			return Look{}, err
		}
		documents = append(documents, d)
		var lease coordinationv1.Lease
		if d.Content["kind"] == "Lease" {
			if err := yaml.Unmarshal([]byte(text), &lease); err != nil {
				return Look{}, err
			}
			in.Leases = append(in.Leases, lease)
		}
	}
	inventory, err := kwok.LoadInventory("", os.ReadFile)
	if err != nil {
		return Look{}, err
	}
	world, err := whatif.New(whatif.Input{Documents: documents, Catalogue: inventory.Catalog(), Now: at()})
	if err != nil {
		return Look{}, err
	}
	explain := func(about whatif.About) string { return Told(world, about) }
	seen := world.Top(whatif.TopInput{Resources: []string{"cpu", "memory"},
		StatusInput: whatif.StatusInput{Surroundings: in}})
	return Look{Top: seen, At: at(), Explain: explain}, nil
}

func model(t *testing.T, width, height int) Model {
	t.Helper()
	look, err := exampleLook()
	if err != nil {
		t.Fatal(err)
	}
	m := New(Settings{Every: 5 * time.Second, Look: func() (Look, error) { return look, nil }}, look, "price")
	return send(m, tea.WindowSizeMsg{Width: width, Height: height})
}

// send gives messages to a Model, and what explain says to one that asks for it.
func send(m Model, messages ...tea.Msg) Model {
	for _, message := range messages {
		next, command := m.Update(message)
		m = next.(Model)
		if _, key := message.(tea.KeyPressMsg); key && command != nil {
			if said, is := command().(explained); is {
				next, _ = m.Update(said)
				m = next.(Model)
			}
		}
	}
	return m
}

// press presses keys: one of a letter, or by name.
func press(m Model, keys ...string) Model {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp,
		"backspace": tea.KeyBackspace, "end": tea.KeyEnd}
	for _, key := range keys {
		if code, named := codes[key]; named {
			m = send(m, tea.KeyPressMsg{Code: code})
		} else {
			m = send(m, tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
		}
	}
	return m
}

// TestU05_Frames: each view at three sizes is as the files have it, and never larger than the screen.
func TestU05_Frames(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"nodes": nil, "node": {"down", "enter"}, "pool": {"o", "end", "enter"},
		"cause": {"w", "enter"}, "waiting": {"w"}, "pools": {"o"},
		"help": {"?"}, "grouped": {"g", "r", "s", "s", "s"}} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
			frame := press(model(t, size[0], size[1]), keys...).Frame() + "\n"
			path := filepath.Join("testdata", fmt.Sprintf("%s-%dx%d.txt", name, size[0], size[1]))
			if *rewrite {
				if err := os.WriteFile(path, []byte(frame), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || frame != string(want) {
				t.Errorf("%s: %v, the frame is\n%s", path, err, frame)
			}
			lines := strings.Split(strings.TrimSuffix(frame, "\n"), "\n")
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] || strings.Contains(line, "\x1b") {
					t.Errorf("%s: %q", path, line)
				}
			}
			if len(lines) != size[1] {
				t.Errorf("%s has %d lines", path, len(lines))
			}
		}
	}
}

// TestU05_ThePageShowsAFrame: the page shows the nodes as the program does.
func TestU05_ThePageShowsAFrame(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/joinerctl.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(model(t, 120, 15).Frame(), "\n")
	if frame := strings.Join(lines, "\n"); !strings.Contains(string(page), "```\n"+frame+"\n```") {
		t.Errorf("docs/joinerctl.md does not show\n%s", frame)
	}
}

// TestU05_ViewsSurviveSizes: a change of size keeps a view, its filter and its cursor. A screen that is too small says
// so, and shows plain lines.
func TestU05_ViewsSurviveSizes(t *testing.T) {
	t.Parallel()
	m := press(model(t, 120, 40), "/", "g", "p", "u", "enter")
	before := m.Frame()
	if !strings.Contains(before, "with /gpu") || strings.Contains(before, "by-hand") ||
		!strings.Contains(before, "gpu-aaaa") {
		t.Error(before)
	}
	small := send(m, tea.WindowSizeMsg{Width: 59, Height: 14})
	if frame := small.Frame(); !strings.HasPrefix(frame, "59x14 is too small: 60x15\n") ||
		!strings.Contains(frame, "\ngpu-aaaa joining") {
		t.Error(frame)
	}
	if after := send(small, tea.WindowSizeMsg{Width: 120, Height: 40}).Frame(); after != before {
		t.Error(after)
	}
	if frame := press(m, "esc").Frame(); !strings.Contains(frame, "by-hand") {
		t.Error(frame)
	}
	for width := 1; width < 90; width += 11 {
		for height := 1; height < 30; height += 7 {
			for _, keys := range [][]string{nil, {"enter"}, {"w", "end", "enter", "down"}, {"o"}, {"?", "end"}} {
				frame := press(send(m, tea.WindowSizeMsg{Width: width, Height: height}), keys...).Frame()
				if lines := strings.Split(frame, "\n"); len(lines) > height || ansi.StringWidth(lines[0]) > width {
					t.Errorf("%dx%d %v:\n%s", width, height, keys, frame)
				}
			}
		}
	}
}

// TestU05_ALostConnectionIsStale: what was seen last stays, is called stale, and is current again after a look.
func TestU05_ALostConnectionIsStale(t *testing.T) {
	t.Parallel()
	m := model(t, 120, 40)
	lost := send(m, failed{errors.New("no cluster:\nthe server does not answer")}, clock(at().Add(12*time.Second)))
	if frame := lost.Frame(); !strings.Contains(frame, "stale 12s: no cluster: the server does not answer\n") ||
		!strings.Contains(frame, "gpu-aaaa") {
		t.Error(frame)
	}
	if frame := send(m, clock(at().Add(time.Minute))).Frame(); !strings.Contains(frame, "stale 1m0s\n") {
		t.Error(frame)
	}
	back := m.look
	back.At = at().Add(15 * time.Second)
	if frame := send(lost, looked(back)).Frame(); strings.Contains(frame, "stale") || !strings.Contains(frame,
		"00:12:15") {
		t.Error(frame)
	}
	m.settings.Look = func() (Look, error) { return Look{}, errors.New("gone") }
	if _, is := m.fetch().(failed); !is {
		t.Error("a look that fails is no failure")
	}
}

// TestU38_NoStateByColourAlone: with and without colours a frame says the same.
func TestU38_NoStateByColourAlone(t *testing.T) {
	t.Parallel()
	plain := model(t, 80, 24)
	painted := plain
	painted.settings.Paint = true
	if frame := painted.Frame(); !strings.Contains(frame, "\x1b[") || ansi.Strip(frame) != plain.Frame() {
		t.Errorf("%q", frame)
	}
}
