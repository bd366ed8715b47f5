package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// programs are the programs that have images. Each is the main package cmd/NAME.
var programs = []string{"joiner", "joiner-operator", "joiner-webhook", "joinerctl"}

// Platform is a system and an architecture, as Go names them.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// imagePlatforms are those of nodes, archivePlatforms those of people (U-33).
var (
	imagePlatforms   = []Platform{{"linux", "amd64"}, {"linux", "arm64"}}
	archivePlatforms = []Platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"}}
)

// parsePlatforms reads a list like linux/amd64,linux/arm64. Each platform has to be one of all.
func parsePlatforms(text string, all []Platform) ([]Platform, error) {
	var chosen []Platform
	for name := range strings.SplitSeq(text, ",") {
		at := slices.IndexFunc(all, func(p Platform) bool { return p.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("--platforms has %q: want some of %s", name, joined(all))
		}
		if slices.Contains(chosen, all[at]) {
			return nil, fmt.Errorf("--platforms has %q twice", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

func joined(platforms []Platform) string {
	var names []string
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}

// Build is a program that was built for a platform.
type Build struct {
	Name     string
	Platform Platform
	Binary   []byte
	// Version is a tag or a pseudo-version, as the build knows it; with +dirty if there are uncommitted changes.
	Version string
	// Revision is the commit, and Time when it was made; zero where there is no repository.
	Revision string
	Time     time.Time
}

// build compiles a program of the module at source. The binary has no debug information, which the commit gives
// anyway.
func build(ctx context.Context, source, name string, platform Platform) (Build, error) {
	b := Build{Name: name, Platform: platform}
	directory, err := os.MkdirTemp("", "release-")
	if err != nil {
		return b, err
	}
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, name)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags=-s -w", "-o", path,
		"./cmd/"+name)
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Arch, "GOFLAGS=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return b, fmt.Errorf("build %s for %s: %w", name, platform, err)
	}
	if b.Binary, err = os.ReadFile(path); err != nil {
		return b, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return b, fmt.Errorf("read what %s knows of its build: %w", path, err)
	}
	b.Version = info.Main.Version
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.time":
			if b.Time, err = time.Parse(time.RFC3339, setting.Value); err != nil {
				return b, fmt.Errorf("the time of the commit: %w", err)
			}
		}
	}
	if b.Version == "" {
		return b, errors.New("the build has no version: it wants a module")
	}
	return b, nil
}
