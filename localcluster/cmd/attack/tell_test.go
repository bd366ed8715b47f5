package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

func output(name, text string) event { return event{Action: "output", Test: name, Output: text + "\n"} }

// Attempts are told in the order of the page, in whatever order their tests end, each with what was seen.
func TestTheStoryIsToldInOrder(t *testing.T) {
	var out strings.Builder
	story := newTeller(&out, []attack.Attempt{
		{Section: "One", Text: "delete `it`", Outcome: "repaired", Tests: []string{"TestA"}},
		{Section: "One", Text: "impersonate", Outcome: "**by design**"},
		{Section: "Two", Text: "create", Outcome: "refused", Tests: []string{"TestB", "TestA"}},
		{Section: "Two", Text: "hide", Outcome: "reported", Tests: []string{"TestC"}},
	})
	const refusal = `x_test.go:1: attack: {"how":"refused","by":"the plugin","text":"no: use that"}`
	for _, e := range []event{
		output("TestB", refusal), output("TestB/sub", refusal), {Action: "pass", Test: "TestB/sub"},
		{Action: "pass", Test: "TestB", Elapsed: 1.5},
		output("TestA", `x_test.go:1: attack: {"how":"waited","text":"something","after":1000000000}`),
		output("TestA",
			`x_test.go:1: attack: {"how":"told","by":"the operator","text":"Restored","after":2000000000}`),
		{Action: "pass", Test: "TestA", Elapsed: 3},
		output("TestC", "x_test.go:9: it was not found"), {Action: "fail", Test: "TestC", Elapsed: 2},
		{Action: "fail"},
	} {
		story.hears(e)
	}
	if !story.end(time.Minute) {
		t.Error("a story with a test that failed is not called failed")
	}
	want := `
One

  1. delete it
     the page: repaired
     seen:     told by the operator after 2s: Restored
     as the page says: TestA (3s)

  2. impersonate
     the page: by design
     not tried: that is so by design

Two

  3. create
     the page: refused
     seen:     refused 2 times by the plugin, with the answer: no: use that
               told by the operator after 2s: Restored
     as the page says: TestB (1.5s)
     as the page says: TestA (3s)

  4. hide
     the page: reported
     NOT AS THE PAGE SAYS: TestC (2s)
x_test.go:9: it was not found

4 attempts in 1m0s, by what the pages say: by design 1, refused 1, repaired 1, reported 1.
2 of 3 tests saw it so. The latest that the operator or a door told of something was 2s after the test began to look.
Nothing that the page tells was seen of: hide
`
	if out.String() != want {
		t.Errorf("told\n%s\nwant\n%s", out.String(), want)
	}
}

// If a test never reported its end, nothing was seen, and the story says so.
func TestATestThatDidNotRunIsTold(t *testing.T) {
	var out strings.Builder
	story := newTeller(&out, []attack.Attempt{{Text: "create", Outcome: "refused", Tests: []string{"TestA"}}})
	story.missing([]string{"TestA"})
	if failed := story.end(0); !failed || !strings.Contains(out.String(), "NOT AS THE PAGE SAYS: TestA") {
		t.Errorf("failed: %t\n%s", failed, out.String())
	}
}

// Each test that a page names is in the tree of end-to-end tests.
func TestThePagesNameTestsThatExist(t *testing.T) {
	homes, err := homesOf("../../e2e")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join("../../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, attempt := range attack.Attempts(string(content)) {
			for _, name := range attempt.Tests {
				if homes[name] == "" {
					t.Errorf("%s: %q names the test %s, which does not exist", page, attempt.Text, name)
				}
			}
		}
	}
}
