// Package commandlinetest holds what the tests of our programs share.
package commandlinetest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

// Program returns a program that writes its log to the given writer.
type Program func(logs io.Writer) commandline.Program

// Call runs the program with arguments, and with these environment variables only.
func (p Program) Call(t *testing.T, environment map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	lookup := func(name string) (string, bool) { value, found := environment[name]; return value, found }
	code = commandline.Run(t.Context(), p(&out), args, lookup, &out, &err)
	return code, out.String(), err.String()
}

// PageNamesItsFlags reports flags in backquotes on a page of the docs that the program does not have. At least atLeast
// flags must be known ones.
func (p Program) PageNamesItsFlags(t *testing.T, page string, atLeast int) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	flags := commandline.New(p(io.Discard), func(string) (string, bool) { return "", false }).Flags()
	found := 0
	for _, match := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(string(content), -1) {
		if flags.Lookup(match[1]) == nil {
			t.Errorf("%s names --%s, which does not exist", page, match[1])
			continue
		}
		found++
	}
	if found < atLeast {
		t.Errorf("only %d flags are found in %s, want %d: does the test still read them?", found, page, atLeast)
	}
}

// ConfigIsReadAgain checks that the output of --print-config is a configuration file with the same settings (U-13).
func (p Program) ConfigIsReadAgain(t *testing.T) {
	t.Helper()
	from := regexp.MustCompile(`(?m) # [a-z]+$`)
	code, printed, failures := p.Call(t, nil, "--print-config")
	if code != 0 || len(from.FindAllString(printed, -1)) == 0 {
		t.Fatalf("exit %d: %s\n%s", code, failures, printed)
	}
	code, again, failures := p.Call(t, nil, "--config", File(t, printed), "--print-config")
	if code != 0 || from.ReplaceAllString(again, "") != from.ReplaceAllString(printed, "") {
		t.Errorf("exit %d: %s\nof\n%s\ncame\n%s", code, failures, printed, again)
	}
}

// File writes a file and returns its path.
func File(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Kubeconfig writes a kubeconfig for a server, without a user, and returns its path.
func Kubeconfig(t *testing.T, server string) string {
	t.Helper()
	return File(t,
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"+
			"clusters: [{name: c, cluster: {server: '"+
			server+"'}}]\n")
}
