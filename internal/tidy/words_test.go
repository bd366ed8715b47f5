package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forbidden is what no tracked file may say. The patterns are put together from parts so that this file passes.
var forbidden = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`(^|[^a-z])/(ro` + `ot|ho` + `me|wo` + `rk)/[a-z.]`), "a path of somebody's machine"},
	{regexp.MustCompile(`proxy\.gol` + `ang\.org|registry\.np` + `mjs\.org|deb\.deb` + `ian\.org`),
		"the host of a package registry"},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		"promises belong in docs/known-gaps.md, with an owner"},
	{regexp.MustCompile(`\.\./sha` + `red\b`), "the repository explains itself"},
	{regexp.MustCompile(`t\.Sk` + `ip(f|Now)?\(`), "a test that is not run proves nothing"},
}

func TestNoFileSaysWhatItShouldNot(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "") {
		if strings.HasSuffix(name, ".sum") || name == "LICENSE" {
			continue
		}
		content := read(t, name)
		for number, line := range strings.Split(content, "\n") {
			for _, rule := range forbidden {
				if rule.pattern.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", name, number+1, rule.reason, strings.TrimSpace(line))
				}
			}
		}
	}
}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	path   = regexp.MustCompile(`^[a-zA-Z0-9_.-]+(/[a-zA-Z0-9_.-]+)+/?$|^[A-Za-z0-9_-]+\.(go|md|mk|sh)$`)
	symbol = regexp.MustCompile(`^([a-z]+)\.([A-Z][A-Za-z0-9]*)(\.([A-Z][A-Za-z0-9]*))?$`)
)

// TestPagesNameWhatExists: each path and each package.Symbol in backquotes on the pages that explain the code is
// there.
func TestPagesNameWhatExists(t *testing.T) {
	t.Parallel()
	sources := map[string]string{} // package name → all its source
	for _, name := range tracked(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content := read(t, name)
		if match := regexp.MustCompile(`(?m)^package ([a-z0-9]+)`).FindStringSubmatch(content); match != nil {
			sources[match[1]] += content
		}
	}
	found := 0
	for _, page := range []string{"ARCHITECTURE.md", "AGENTS.md", "README.md"} {
		for _, match := range quoted.FindAllStringSubmatch(read(t, page), -1) {
			text := match[1]
			switch {
			case path.MatchString(text) && !strings.Contains(text, ".io/") && !strings.Contains(text, ".sh/"):
				found++
				if _, err := os.Stat(filepath.Join("../..", text)); err != nil && !strings.HasPrefix(text, "bin/") {
					t.Errorf("%s names %s, which does not exist", page, text)
				}
			case symbol.MatchString(text):
				found++
				parts := symbol.FindStringSubmatch(text)
				for _, name := range []string{parts[2], parts[4]} {
					if name != "" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(sources[parts[1]]) {
						t.Errorf("%s names %s, which does not exist", page, text)
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names found on the pages: does the test still read them?", found)
	}
}

// TestSpecPagesNameTestsThatExist: a test that was renamed or taken away would leave a claim without its proof.
func TestSpecPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, name := range tracked(t, "_test.go") {
		for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, name),
			-1) {
			declared[match[1]] = true
		}
	}
	found := 0
	for _, page := range tracked(t, ".md") {
		if !strings.HasPrefix(page, "docs/spec/") && !strings.HasPrefix(page, "docs/autonode-") {
			continue
		}
		for _, match := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(read(t, page), -1) {
			if found++; !declared[match[1]] {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no test is named on any page: does this test still read them?")
	}
}
