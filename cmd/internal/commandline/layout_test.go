package commandline_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

// keysOf are the keys of a line in the order in which they stand, as a parser of logs reads them.
func keysOf(t *testing.T, line string) (keys []string, values map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &values); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	decoder := json.NewDecoder(strings.NewReader(line))
	for depth, key := 0, true; ; {
		token, err := decoder.Token()
		if err != nil {
			return keys, values
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			key = true
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			key = true
			continue
		}
		if text, is := token.(string); is && depth == 1 && key {
			keys, key = append(keys, text), false
			continue
		}
		key = true
	}
}

// logged returns what a program with these settings wrote to its stdout.
func logged(t *testing.T, format string, level slog.Level, write func(log logr.Logger)) []string {
	t.Helper()
	var out lines
	log, stop, err := commandline.NewLoggerAs(&out, format, []string{"stdout"}, level)
	if err != nil {
		t.Fatal(err)
	}
	write(log)
	stop()
	return strings.Split(strings.TrimSpace(out.all.String()), "\n")
}

// K-17: a line has Karpenter's keys in their order, objects under their kinds, a time in UTC with milliseconds.
func TestK17_ALineHasKarpentersKeys(t *testing.T) {
	got := logged(t, commandline.KarpenterFormat, slog.LevelInfo, func(log logr.Logger) {
		log.WithName("nodeclaim.lifecycle").Info("registered", "event", "Registered", "claim", "default-a", "node",
			"n1", "pool", "default")
		log.WithName("provisioner").Error(errors.New("the API server is away"), "could not plan", "pod", "shop/web-0",
			"pods", []string{"a/b"})
	})
	keys, values := keysOf(t, got[0])
	want := []string{"level", "time", "logger", "message", "commit", "controller", "NodeClaim", "Node", "NodePool",
		"event"}
	if !slices.Equal(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
	if at := values["time"].(string); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(at) {
		t.Errorf("time %s", at)
	}
	if values["level"] != "INFO" || values["message"] != "registered" ||
		values["controller"] != "nodeclaim.lifecycle" || values["NodeClaim"].(map[string]any)["name"] != "default-a" {
		t.Errorf("%s", got[0])
	}
	_, values = keysOf(t, got[1])
	pod := values["Pod"].(map[string]any)
	if values["level"] != "ERROR" || values["error"] != "the API server is away" || pod["namespace"] != "shop" ||
		pod["name"] != "web-0" {
		t.Errorf("%s", got[1])
	}
}

// K-17: the caller stands in lines of debug only, which are named DEBUG whatever their level; warnings are WARN.
func TestK17_LevelsAndTheCaller(t *testing.T) {
	got := logged(t, commandline.KarpenterFormat, slog.LevelDebug, func(log logr.Logger) {
		log.V(1).Info("quiet")
		log.Info("told")
		commandline.Warn(log, "beware")
	})
	for i, want := range []string{"DEBUG", "INFO", "WARN"} {
		_, values := keysOf(t, got[i])
		caller, has := values["caller"].(string)
		if values["level"] != want || has != (want == "DEBUG") || has && !strings.Contains(caller, "layout_test.go:") {
			t.Errorf("%s: want %s", got[i], want)
		}
	}
}

// K-17: --log-format=joiner keeps the layout of before.
func TestK17_TheOtherLayout(t *testing.T) {
	got := logged(t, commandline.JoinerFormat, slog.LevelInfo, func(log logr.Logger) {
		log.WithName("l").Info("registered", "claim", "default-a")
	})
	if keys, _ := keysOf(t, got[0]); !slices.Equal(keys, []string{"time", "level", "msg", "logger", "claim"}) {
		t.Errorf("%s", got[0])
	}
}

// K-18: of equal lines, the first hundred of a second are written, then one in a hundred. Lines with other messages
// are not affected.
func TestK18_RepeatedLinesAreFew(t *testing.T) {
	got := logged(t, commandline.KarpenterFormat, slog.LevelInfo, func(log logr.Logger) {
		for range 1000 {
			log.Info("again")
		}
		log.Info("once")
	})
	// The thousand lines take far less than a second. If a new second of the clock begins among them, twice as many
	// are written.
	if n := len(got); n < 110 || n > 220 || !strings.Contains(got[n-1], `"once"`) {
		t.Errorf("%d lines, the last is %s; want 110 to 220, and the other message", n, got[n-1])
	}
}

// K-17: the log goes to all paths that are given; what cannot be opened is refused by name, as is another layout.
func TestK17_WhereTheLogGoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "joiner.log")
	var out lines
	log, stop, err := commandline.NewLoggerAs(&out, commandline.KarpenterFormat, []string{"stdout", file},
		slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("told")
	stop()
	written, err := os.ReadFile(file)
	if err != nil || !out.has(`"told"`) || !strings.Contains(string(written), `"told"`) {
		t.Errorf("stdout %q, file %q, error %v", out.all.String(), written, err)
	}
	missing := filepath.Join(t.TempDir(), "no", "such", "folder")
	for _, row := range []struct {
		format, want string
		paths        []string
	}{
		{commandline.KarpenterFormat, missing, []string{missing}},
		{"yaml", `--log-format is "yaml"`, []string{"stdout"}},
		{commandline.JoinerFormat, "--log-output-paths is empty", nil},
	} {
		_, _, err := commandline.NewLoggerAs(&out, row.format, row.paths, slog.LevelInfo)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("format %q, paths %v: %v; want %q", row.format, row.paths, err, row.want)
		}
	}
}
