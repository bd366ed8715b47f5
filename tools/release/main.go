package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(2)
	}
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"images": images, "archives": archives, "run": runLayout}
	if len(args) == 0 || verbs[args[0]] == nil {
		return errors.New("want one of: images, archives, run")
	}
	return verbs[args[0]](ctx, args[1:], stdout, stderr)
}

// newFlags returns flags whose mistakes are returned as errors.
func newFlags(verb string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("release "+verb, flag.ContinueOnError)
	flags.SetOutput(stderr)
	return flags
}

func images(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("images", stderr)
	source := flags.String("source", ".", "the directory of the module")
	out := flags.String("out", "", "the directory below which each program has its layout")
	list := flags.String("platforms", joined(imagePlatforms), "for which platforms")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("--out is missing: want a directory")
	}
	platforms, err := parsePlatforms(*list, imagePlatforms)
	if err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = programs
	}
	for _, name := range names {
		if !slices.Contains(programs, name) {
			return fmt.Errorf("there is no program %q: want some of %s", name, strings.Join(programs, ", "))
		}
		builds, err := buildAll(ctx, *source, name, platforms)
		if err != nil {
			return err
		}
		directory := filepath.Join(*out, name)
		digest, err := writeLayout(directory, builds)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s  %s %s  %s\n", digest, name, builds[0].Version, directory)
	}
	return nil
}

func buildAll(ctx context.Context, source, name string, platforms []Platform) ([]Build, error) {
	var builds []Build
	for _, platform := range platforms {
		b, err := build(ctx, source, name, platform)
		if err != nil {
			return nil, err
		}
		builds = append(builds, b)
	}
	return builds, nil
}

func archives(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("archives", stderr)
	source := flags.String("source", ".", "the directory of the module")
	out := flags.String("out", "", "the directory of the archives")
	list := flags.String("platforms", joined(archivePlatforms), "for which platforms")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("want --out with a directory, and no arguments")
	}
	platforms, err := parsePlatforms(*list, archivePlatforms)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(*source, "LICENSE"))
	if err != nil {
		return err
	}
	builds, err := buildAll(ctx, *source, "joinerctl", platforms)
	if err != nil {
		return err
	}
	if err := writeArchives(*out, builds, license); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d archives of joinerctl %s, and SHA256SUMS: %s\n", len(builds), builds[0].Version, *out)
	return nil
}

func runLayout(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("run", stderr)
	directory := flags.String("layout", "", "the OCI layout of a program")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *directory == "" {
		return errors.New("--layout is missing: want the directory of a layout")
	}
	alone, err := run(ctx, *directory, flags.Args(), stdout, stderr)
	if err == nil && !alone {
		fmt.Fprintln(stderr,
			"release: it ran beside the files of this machine: only root on Linux can take these away")
	}
	return err
}
