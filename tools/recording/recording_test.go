package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

const kept = "../../docs/recording/demo"

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// U-34: the recording has the demo's chapters, in their order, and is complete.
func TestU34_TheRecordingIsOfTheDemo(t *testing.T) {
	t.Parallel()
	declared := regexp.MustCompile(`\{"([a-z0-9]+)", "([^"]+)", (?:nil|\[\]step)`).
		FindAllStringSubmatch(string(read(t, "../../localcluster/cmd/demo/chapters.go")), -1)
	told := regexp.MustCompile(`(?m)^Chapter ([a-z0-9]+): (.+)$`).FindAllStringSubmatch(string(read(t, kept+".txt")),
		-1)
	if len(declared) < 2 || len(told) != len(declared) {
		t.Fatalf("the recording has %d chapters, the demo %d: make recording", len(told), len(declared))
	}
	for i, one := range told {
		if one[1] != declared[i][1] || one[2] != declared[i][2] {
			t.Errorf("the recording has chapter %q, the demo %q: make recording", one[1:], declared[i][1:])
		}
	}
	if !bytes.Contains(read(t, kept+".txt"), []byte("Everything held.")) {
		t.Error("the recording is of a demo that did not come to its end")
	}
}

// U-34: text and picture are made from the recording, and the picture is not large.
func TestU34_TextAndPictureAreOfTheRecording(t *testing.T) {
	t.Parallel()
	lines, err := parseCast(read(t, kept+".cast"))
	if err != nil {
		t.Fatal(err)
	}
	const largest = 300 << 10
	svg := read(t, kept+".svg")
	if !bytes.Equal(svg, svgOf(lines)) || !bytes.Equal(read(t, kept+".txt"), textOf(lines)) {
		t.Error("text or picture differ from what is made of the recording")
	}
	if len(svg) > largest {
		t.Errorf("the picture has %d bytes, at most %d are allowed", len(svg), largest)
	}
	for i, one := range lines[1:] {
		if pause := one.at - lines[i].at; pause < 0 || pause > longest+0.02 { // two roundings
			t.Errorf("before line %d nothing happens for %.2f s", i+2, pause)
		}
	}
}

// U-34: what identifies the machine is left out, and a program that fails leaves no recording.
func TestU34_WhatIsKept(t *testing.T) {
	t.Parallel()
	got := anonymous("in /tmp/joiner-cluster-42/kubeconfig   leader box (since 1s)  ", "box")
	if want := "in (a temporary folder)/kubeconfig   leader joiner-a (since 1s)"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	if lines, err := record("false"); err == nil {
		t.Errorf("a program that fails left %v", lines)
	}
	if got := shortened([]line{{0.5, "a"}, {9.5, "b"}, {9.75, "c"}}); got[1].at != 1.5 || got[2].at != 1.75 {
		t.Errorf("shortened to %v", got)
	}
	if wide := cut([]line{{0, strings.Repeat("x", columns+1)}})[0].text; wide != strings.Repeat("x", columns-1)+"…" {
		t.Errorf("a line that is too wide became %q", wide)
	}
}
