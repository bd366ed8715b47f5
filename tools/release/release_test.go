package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func built(platform Platform) Build {
	return Build{Name: "joiner", Platform: platform, Binary: []byte("for " + platform.String()), Version: "v0.4.0",
		Revision: "abc", Time: time.Date(2026, 11, 24, 1, 2, 3, 0, time.FixedZone("", 3600))}
}

func builtFor(platforms []Platform) (all []Build) {
	for _, p := range platforms {
		all = append(all, built(p))
	}
	return all
}

// tree returns what is below a directory, by path.
func tree(t *testing.T, directory string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(directory, path)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// U-11: the same builds give the same bytes, wherever they are written and whatever was there before.
func TestU11_TheSameBytes(t *testing.T) {
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "made")
	if err := os.WriteFile(filepath.Join(first, "index.json"), []byte("of before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{first, second} {
		if _, err := writeLayout(directory, builtFor(imagePlatforms)); err != nil {
			t.Fatal(err)
		}
	}
	one, other := tree(t, first), tree(t, second)
	if len(one) != len(other) || len(one) < 8 {
		t.Fatalf("%d and %d files", len(one), len(other))
	}
	for name := range one {
		if one[name] != other[name] {
			t.Errorf("%s differs", name)
		}
	}
}

// U-11: a layout follows the image specification, and its images have only the program and certificates.
func TestU11_AnImageHasTheProgramAndCertificatesAlone(t *testing.T) {
	directory := t.TempDir()
	if _, err := writeLayout(directory, builtFor(imagePlatforms)); err != nil {
		t.Fatal(err)
	}
	at, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(at); err != nil {
		t.Error(err)
	}
	for _, platform := range imagePlatforms {
		one, err := ours(directory, platform)
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS != platform.OS || config.Architecture != platform.Arch || config.Config.User != "65532:65532" ||
			!slices.Equal(config.Config.Entrypoint, []string{"/joiner"}) ||
			config.Config.Labels["org.opencontainers.image.created"] != "2026-11-24T00:02:03Z" ||
			config.Config.Labels["org.opencontainers.image.revision"] != "abc" {
			t.Errorf("%s: %+v", platform, config)
		}
		files := contents(t, one)
		if files["joiner"] != "for "+platform.String() || len(files) != 5 {
			t.Errorf("%s has %d files, and as program %q", platform, len(files), files["joiner"])
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(files[rootsPath])) || strings.Count(files[rootsPath], "BEGIN") < 50 {
			t.Errorf("%s: the certificates cannot be read, or are few", platform)
		}
	}
	if _, err := ours(directory, Platform{"linux", "riscv64"}); err == nil ||
		!strings.Contains(err.Error(), "no image for linux/riscv64") {
		t.Errorf("a platform that is not there: %v", err)
	}
}

// contents returns the files of an image as a runtime would unpack it; directories have an empty text.
func contents(t *testing.T, from v1.Image) map[string]string {
	t.Helper()
	found := map[string]string{}
	stream := mutate.Extract(from)
	defer stream.Close()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = string(content)
	}
}

// U-11: an image runs from its unpacked layout. If the test is root on Linux, it sees nothing else and runs as nobody.
func TestU11_AnImageRuns(t *testing.T) {
	made, err := build(t.Context(), "testdata/module", "hello", Platform{"linux", runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if _, err := writeLayout(directory, []Build{made}); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	alone, err := run(t.Context(), directory, []string{"one", "two"}, &out, &problems)
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	if alone != (os.Geteuid() == 0 && runtime.GOOS == "linux") {
		t.Errorf("alone is %t", alone)
	}
	if want := "65532 etc hello one two\n"; alone && out.String() != want {
		t.Errorf("it said %q, want %q", out.String(), want)
	}
	if !strings.HasSuffix(out.String(), " one two\n") {
		t.Errorf("it said %q", out.String())
	}
}

// U-33: an archive for each system, which SHA256SUMS has, and the same bytes each time.
func TestU33_Archives(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for _, directory := range []string{first, second} {
		if err := writeArchives(directory, builtFor(archivePlatforms), []byte("license")); err != nil {
			t.Fatal(err)
		}
	}
	one := tree(t, first)
	if fmt.Sprint(one) != fmt.Sprint(tree(t, second)) {
		t.Error("the second time gives other bytes")
	}
	lines := strings.Split(strings.TrimSpace(one["SHA256SUMS"]), "\n")
	if len(lines) != len(archivePlatforms) || len(one) != len(lines)+1 {
		t.Fatalf("%d sums for %d files", len(lines), len(one)-1)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		content, found := one[name]
		if !found || fmt.Sprintf("%x", sha256.Sum256([]byte(content))) != sum {
			t.Errorf("%s is missing, or has another sum", name)
		}
		files := unpacked(t, name, content)
		program := "joiner"
		if strings.Contains(name, "windows") {
			program += ".exe"
		}
		if !strings.HasPrefix(files[program], "for ") || files["LICENSE"] != "license" || len(files) != 2 {
			t.Errorf("%s has %v", name, files)
		}
	}
	if lines[0][66:] != "joiner_0.4.0_darwin_amd64.tar.gz" || !strings.HasSuffix(lines[5], "_windows_arm64.zip") {
		t.Errorf("names are %v", lines)
	}
}

func unpacked(t *testing.T, name, content string) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(name string, from io.Reader) {
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	if strings.HasSuffix(name, ".zip") {
		reader, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range reader.File {
			opened, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, opened)
		}
		return found
	}
	compressed, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		add(header.Name, reader)
	}
}

// U-36: mistakes in a call are reported, with what is allowed.
func TestU36_MistakesAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "want one of: images, archives, run",
		"pictures":                             "want one of: images, archives, run",
		"images":                               "--out is missing",
		"images --out x --platforms linux/x86": `--platforms has "linux/x86": want some of linux/amd64,linux/arm64`,
		"images --out x --platforms linux/amd64,linux/amd64": `"linux/amd64" twice`,
		"images --out x karpenter":                           `there is no program "karpenter": want some of joiner, `,
		"archives":                                           "--out",
		"archives --out x joiner":                            "no arguments",
		"archives --out x --platforms plan9/amd64":           `"plan9/amd64": want some of darwin/amd64`,
		"archives --out x --source testdata":                 "LICENSE",
		"run":                                                "--layout is missing",
		"run --layout testdata":                              "read the layout testdata",
	} {
		err := command(t.Context(), strings.Fields(line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("release %s: %v, want %q", line, err, want)
		}
	}
}
