package commandline_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

// trial is a program with flags of several types, and what it started with.
type trial struct {
	idle      time.Duration
	port      int
	share     float64
	quick     bool
	name      string
	providers []string
	tags      map[string]string
	started   bool
}

func (p *trial) program() commandline.Program {
	return commandline.Program{Name: "joiner-trial", Short: "It tries.", Example: "idle",
		Groups: []commandline.Group{commandline.NewGroup("All", func(flags *pflag.FlagSet) {
			flags.DurationVar(&p.idle, "idle", time.Second, "")
			flags.IntVar(&p.port, "port", 8080, "")
			flags.Float64Var(&p.share, "share", 0.5, "")
			flags.BoolVar(&p.quick, "quick", false, "")
			flags.StringVar(&p.name, "name", "", "")
			flags.StringSliceVar(&p.providers, "providers", []string{"kwok"}, "")
			flags.StringToStringVar(&p.tags, "tags", nil, "")
		})},
		Start: func(context.Context) error { p.started = true; return nil }}
}

// tried runs the program with a file; $FILE in args stands for its path.
func tried(t *testing.T, content string, environment map[string]string,
	args ...string) (p trial, code int, out, failures string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "$FILE", path)
	}
	var stdout, stderr bytes.Buffer
	lookup := func(name string) (string, bool) { value, found := environment[name]; return value, found }
	code = commandline.Run(t.Context(), p.program(), args, lookup, &stdout, &stderr)
	return p, code, stdout.String(), strings.ReplaceAll(stderr.String(), path, "FILE")
}

const header = "apiVersion: config.joiner.sh/v1\nkind: JoinerTrialConfig\n"

// U-13: a flag wins over a variable, a variable over the file, the file over the default.
func TestU13_WhichSettingWins(t *testing.T) {
	t.Parallel()
	p, code, _, failures := tried(t,
		header+"idle: 3s\nport: 3\nshare: 0.25\nproviders: [ec2, 'a,b']\ntags: {team: red, a: 'x,y'}\n",
		map[string]string{"IDLE": "2s", "PORT": "2", "CONFIG": "nothing of ours"}, "--config", "$FILE", "--idle", "1s")
	if code != 0 || !p.started {
		t.Fatalf("exit %d: %s", code, failures)
	}
	if got := fmt.Sprint(p.idle, p.port, p.share, p.quick, p.providers, len(p.providers), p.tags); got !=
		"1s 2 0.25 false [ec2 a,b] 2 map[a:x,y team:red]" {
		t.Errorf("the settings are %s", got)
	}
}

// U-13: what is printed says where each setting comes from, and is itself a file that says the same.
func TestU13_WhatIsInForceIsPrinted(t *testing.T) {
	t.Parallel()
	p, code, out, failures := tried(t, header+"share: 0.25\nproviders: [ec2, 'a,b']\ntags: {team: red}\n",
		map[string]string{"NAME": "x: \"y\" # z"}, "--config", "$FILE", "--quick", "--print-config")
	want := header + `idle: "1s" # default` + "\n" + `name: "x: \"y\" # z" # variable NAME` +
		"\nport: 8080 # default\n" +
		`providers: ["ec2","a,b"] # file` + "\nquick: true # flag\nshare: 0.25 # file\n" +
		`tags: {"team":"red"} # file` + "\n"
	if code != 0 || p.started || out != want {
		t.Fatalf("exit %d, started %t, %s\n%s\nwant\n%s", code, p.started, failures, out, want)
	}
	_, code, again, failures := tried(t, out, nil, "--config", "$FILE", "--print-config")
	strip := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			all = append(all, line[:max(0, strings.LastIndex(line, " # "))])
		}
		return all
	}
	if code != 0 || fmt.Sprint(strip(again)) != fmt.Sprint(strip(out)) {
		t.Errorf("read again: exit %d, %s\n%s", code, failures, again)
	}
}

// U-13, U-36: each mistake in a file is one line with the setting, its value and what is allowed.
func TestU13_MistakesInAFileAreNamed(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		header + "idel: 3s\n": "idel is no setting of joiner-trial; do you mean idle?",
		header + "something-else: 3s\n": "something-else is no setting of joiner-trial; the settings are the " +
			"flags of joiner-trial --help",
		header + "config: x\n":               "config is no setting of joiner-trial; the settings are",
		header + "port: abc\n":               `port is "abc": strconv.ParseInt: parsing "abc": invalid syntax`,
		header + "port: [1]\n":               "port is [1]: it must be one value, not a list",
		header + "name: {a: b}\n":            `name is {"a":"b"}: it must be one value, not an object`,
		header + "name:\n":                   "name is missing: it must have a value; leave it out for the default",
		header + "port: 1\nport: 2\n":        "it is no YAML object: yaml: unmarshal errors: line 4: key \"port\" already set in map",
		header + "port: 1\n---\nname: a\n":   "it has 2 YAML documents, with --- between them: want one",
		"port: 1\n":                          "is missing: it must be",
		"kind: JoinerConfig\n" + header[:32]: `kind is "JoinerConfig": it must be JoinerTrialConfig`,
		"- a\n":                              "it is no YAML object: ",
	} {
		p, code, _, failures := tried(t, content, nil, "--config", "$FILE")
		first, _, _ := strings.Cut(failures, "\n")
		if code != 2 || p.started || !strings.HasPrefix(first, "joiner-trial: --config FILE: ") ||
			!strings.Contains(first, want) {
			t.Errorf("%q: exit %d\n%swant %s", content, code, failures, want)
		}
	}
	if _, code, _, failures := tried(t, header+"idel: 1s\nprot: 1\n", nil, "--config", "$FILE"); code != 2 ||
		strings.Count(failures, "do you mean") != 2 {
		t.Errorf("two mistakes: exit %d\n%s", code, failures)
	}
	if _, code, _, failures := tried(t, "", nil, "--config", "/nowhere"); code != 2 ||
		!strings.Contains(failures, "/nowhere") {
		t.Errorf("a file that is not there: exit %d\n%s", code, failures)
	}
	if _, code, _, failures := tried(t, "", nil, "--pord", "1"); code != 2 ||
		!strings.Contains(failures, "unknown flag: --pord; do you mean port?") {
		t.Errorf("a flag that is not there: exit %d\n%s", code, failures)
	}
}
