package webhook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// what does not go together is refused with the flag and what is wanted.
func TestA14_CallersAreSetUpWhole(t *testing.T) {
	t.Parallel()
	own := OwnCertificates{CertSecretName: "own"}
	for want, c := range map[string]Config{
		"":                                      {Authentication: ByPath, OwnCertificates: own},
		"--path-token-file is missing":          {Authentication: ByPath},
		`--path-token-file is "t" beside`:       {Authentication: ByPath, OwnCertificates: own, PathTokenFile: "t"},
		"--client-ca-file is missing":           {Authentication: ByCertificate, ClientNames: []string{"a"}},
		"--client-names is missing":             {Authentication: ByCertificate, ClientCAFile: "ca"},
		"are for --authentication=":             {Authentication: ByPath, OwnCertificates: own, ClientCAFile: "ca"},
		"--path-token-file is for":              {Authentication: Unverified, PathTokenFile: "t"},
		`--authentication is "": want Path`:     {},
		`--authentication is "path": want Path`: {Authentication: "path"},
	} {
		err := c.validateCallers()
		if (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
	if DefaultConfig().Authentication != ByPath || pathToKeep(ByPath) != Path || pathToKeep(ByCertificate) != "" {
		t.Error("the path is not the default, or kept where nobody asks for it")
	}
}

// tokens of a file are renewed without a restart. If the file can no longer be read, the last tokens stay. At
// the start, a file without valid tokens is an error.
func TestA14_TokensOfAFileAreReadAnew(t *testing.T) {
	t.Parallel()
	const first, second = "abcdefghijklmnopqrstuvwxyz0123456789", "9876543210zyxwvutsrqponmlkjihgfedcba"
	path := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range []string{"", "\n\n", "short\n", first + "/\n"} {
		write(content)
		if _, err := openTokens(path, logr.Discard()); err == nil || strings.Contains(err.Error(), first) {
			t.Errorf("%q: error %v", content, err)
		}
	}
	write(first + "\n")
	file, err := openTokens(path, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if got := file.get(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	late := func() { // as if the last look were long ago
		known := *file.known.Load()
		known.at = time.Now().Add(-time.Minute)
		file.known.Store(&known)
	}
	write(first + "\n" + second + "\n")
	expect("at once", first)
	late()
	expect("later", first, second)
	write("x")
	late()
	expect("spoilt", first, second)
}
