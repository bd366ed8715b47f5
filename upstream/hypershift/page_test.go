package hypershift

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/docs/adoption-hypershift.md"
	// readUnder is the section with the list of what was read.
	readUnder = "\n## What was read\n"
)

var (
	span       = regexp.MustCompile("`([^`\n]+)`")
	file       = regexp.MustCompile(`^[a-z0-9_-]+(/[a-z0-9._-]+)+\.(go|yaml|md)$`)
	identifier = regexp.MustCompile(`^([a-z0-9]+\.)?[A-Za-z][A-Za-z0-9]*(\.[A-Z][A-Za-z]*)?$`)
	commit     = regexp.MustCompile(`^[0-9a-f]{10}(, [0-9a-f]{10})*$`)
)

// upstream is the list of the page: functions by file.
func upstream(t *testing.T, list string) map[string][]string {
	t.Helper()
	read := map[string][]string{}
	for line := range strings.Lines(list) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		if got := strings.TrimSpace(cells[2]); !commit.MatchString(got) {
			t.Errorf("%s: the commit is %q: want ten digits, and more after a comma", cells[0], got)
		}
		name := span.FindStringSubmatch(cells[0])[1]
		if !file.MatchString(name) || read[name] != nil {
			t.Errorf("the list has the file %q twice, or it is none", name)
		}
		read[name] = []string{}
		for _, function := range span.FindAllStringSubmatch(cells[1], -1) {
			read[name] = append(read[name], function[1])
		}
	}
	return read
}

// every file and function that the page names is of ours, and then it is there, or it is in the list with the
// commit at which it was seen. The list has nothing that the page does not name.
func TestA29_WhatThePageNamesWasSeen(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	exported, err := os.ReadFile(filepath.Join(root, "autonodepolicy", "exported.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text, list, found := strings.Cut(string(content), readUnder)
	if !found {
		t.Fatalf("the page has no section %q", strings.TrimSpace(readUnder))
	}
	read := upstream(t, list)
	functions := map[string]bool{}
	for _, names := range read {
		for _, name := range names {
			functions[name] = true
		}
	}
	named := map[string]bool{}
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	for _, match := range span.FindAllStringSubmatch(prose, -1) {
		name := match[1]
		named[name] = true
		switch {
		case file.MatchString(name):
			if _, ours := os.Stat(filepath.Join(root, name)); ours != nil && read[name] == nil {
				t.Errorf("%s is not of ours, and not in the list", name)
			}
		case identifier.MatchString(name):
			if !functions[name] && !isExported(string(exported), name) && name != "AutoNodePolicy" {
				t.Errorf("%s is not exported by autonodepolicy, and not in the list", name)
			}
		}
	}
	for name, names := range read {
		for _, wanted := range append(slices.Clone(names), name) {
			if !named[wanted] {
				t.Errorf("the list has %s, which the page does not name", wanted)
			}
		}
	}
	if len(read) == 0 || len(functions) == 0 {
		t.Errorf("read %v", read)
	}
}

// isExported says whether PACKAGE.NAME or PACKAGE.TYPE.METHOD is in the list of exported names.
func isExported(list, name string) bool {
	pkg, rest, qualified := strings.Cut(name, ".")
	if !qualified {
		return false
	}
	of := pkg
	if pkg == "v1beta1" {
		of = "api/v1beta1"
	}
	holder, method, isMethod := strings.Cut(rest, ".")
	for line := range strings.Lines(list) {
		line, ours := strings.CutPrefix(strings.TrimSpace(line), of+": ")
		if !ours {
			continue
		}
		if isMethod && regexp.MustCompile(`^func \(\w+ `+holder+`\) `+method+`\(`).MatchString(line) {
			return true
		}
		if !isMethod && regexp.MustCompile(`^(func|type|const) `+holder+`\b`).MatchString(line) {
			return true
		}
	}
	return false
}

// the page says all that somebody who takes it over asks for.
func TestA29_ThePageIsWhole(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"Which file calls what", "What HyperShift keeps", "What goes", "The default size",
		"Rights", "The definition", "The feature gate", "The identity of Karpenter", "Decisions", "What was read"} {
		_, section, found := strings.Cut(string(content), "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || len(strings.Fields(section)) < 20 {
			t.Errorf("the section %q is missing or says nothing", title)
		}
	}
	rules, err := os.ReadFile(filepath.Join(root, "charts", "joiner-operator", "rules", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"autonodepolicies", "autonodepolicies/status"} {
		if !strings.Contains(string(content), "resources: ["+name+"]") || !strings.Contains(string(rules), name) {
			t.Errorf("%s: not in the rights of the page, or not in those of our own operator", name)
		}
	}
}
