package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// ours returns the image for a platform from the only index of a layout.
func ours(directory string, platform Platform) (v1.Image, error) {
	at, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		return nil, fmt.Errorf("read the layout %s: %w", directory, err)
	}
	top, err := at.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(top.Manifests) != 1 {
		return nil, fmt.Errorf("the layout %s has %d entries: want the one index that release writes", directory,
			len(top.Manifests))
	}
	within, err := at.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	all, err := within.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, one := range all.Manifests {
		if p := one.Platform; p != nil && p.OS == platform.OS && p.Architecture == platform.Arch {
			return within.Image(one.Digest)
		}
	}
	return nil, fmt.Errorf("the layout %s has no image for %s", directory, platform)
}

// unpack writes the files of an image below a directory.
func unpack(from v1.Image, directory string) error {
	stream := mutate.Extract(from)
	defer stream.Close()
	reader := tar.NewReader(stream)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("the image has a file %q, which is outside of it", header.Name)
		}
		path := filepath.Join(directory, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, header.FileInfo().Mode().Perm()); err != nil {
			return err
		}
	}
}

// run unpacks the image for this machine, and runs it with args. If we are root on Linux, it sees only its own files
// and runs as its user. Otherwise it runs as we do. alone says whether it was confined.
func run(ctx context.Context, directory string, args []string, stdout, stderr io.Writer) (alone bool, err error) {
	from, err := ours(directory, Platform{OS: "linux", Arch: runtime.GOARCH})
	if err != nil {
		return false, err
	}
	config, err := from.ConfigFile()
	if err != nil {
		return false, err
	}
	files, err := os.MkdirTemp("", "release-run-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(files)
	if err := os.Chmod(files, 0o755); err != nil { // another user enters
		return false, err
	}
	if err := unpack(from, files); err != nil {
		return false, err
	}
	if len(config.Config.Entrypoint) == 0 {
		return false, fmt.Errorf("the layout %s has an image without an entrypoint", directory)
	}
	command := exec.CommandContext(ctx, config.Config.Entrypoint[0], args...)
	command.Stdout, command.Stderr, command.Env = stdout, stderr, []string{}
	alone = confine(command, files, config.Config.User)
	if !alone {
		command = exec.CommandContext(ctx, filepath.Join(files, config.Config.Entrypoint[0]), args...)
		command.Stdout, command.Stderr, command.Env = stdout, stderr, []string{}
	}
	if err := command.Run(); err != nil {
		return alone, fmt.Errorf("%s %s: %w", config.Config.Entrypoint[0], strings.Join(args, " "), err)
	}
	return alone, nil
}
