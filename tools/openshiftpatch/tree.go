package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The files that are changed, below the tree.
const (
	registerFile = "openshift-kube-apiserver/admission/admissionenablement/register.go"
	featuresFile = "pkg/features/openshift_features.go"
	modFile      = "go.mod"
)

// What is put in.
const (
	pluginModule  = "github.com/joiner-autoscaler/joiner/nodescheduling"
	pluginPackage = pluginModule + "/plugin"
	pluginName    = "scheduling.openshift.io/NodeSchedulingPolicy"
	gate          = "OpenShiftNodeSchedulingPolicy"
	// unreleased is the version by which modules of one checkout require each other.
	unreleased = "v0.0.0"
)

// change is what becomes of a file.
type change struct {
	name          string // below the tree
	mode          os.FileMode
	before, after []byte
	parts         []part
}

// part is something that a file has to have.
type part struct {
	what  string
	added bool
}

// read works out the change of each file. The error names all missing places at once.
func read(tree, version string) ([]change, error) {
	var files []change
	var errs []error
	for _, f := range []struct {
		name  string
		patch func(name string, content []byte) ([]byte, []part, error)
	}{
		{registerFile, patchRegister},
		{featuresFile, patchFeatures},
		{modFile, func(name string, content []byte) ([]byte, []part, error) {
			return patchMod(name, content, version)
		}},
	} {
		c := change{name: f.name}
		err := c.load(tree)
		if err == nil {
			c.after, c.parts, err = f.patch(f.name, c.before)
		}
		if err != nil {
			errs = append(errs, err)
		}
		files = append(files, c)
	}
	return files, errors.Join(errs...)
}

func (c *change) load(tree string) error {
	path := filepath.Join(tree, c.name)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: the file is not there: want a checkout of openshift/kubernetes in %q", c.name, tree)
	}
	if err != nil {
		return err
	}
	c.mode = info.Mode().Perm()
	c.before, err = os.ReadFile(path)
	return err
}

// write writes the changed files. First it writes all of them beside the originals, and then renames one after the
// other. If a rename fails, the files before it get their old content back.
func write(tree string, files []change) (err error) {
	var changed []change
	var staged []string
	defer func() {
		for _, name := range staged {
			_ = os.Remove(name) // gone when it took its place
		}
	}()
	for _, f := range files {
		if bytes.Equal(f.after, f.before) {
			continue
		}
		name, err := stage(filepath.Join(tree, f.name), f)
		if name != "" {
			staged = append(staged, name)
		}
		if err != nil {
			return err
		}
		changed = append(changed, f)
	}
	for i, f := range changed {
		if err := os.Rename(staged[i], filepath.Join(tree, f.name)); err != nil {
			return errors.Join(err, restore(tree, changed[:i]))
		}
	}
	return nil
}

// stage writes the new content of a file beside it.
func stage(path string, f change) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(f.after)
	return file.Name(), errors.Join(err, file.Chmod(f.mode), file.Close())
}

func restore(tree string, files []change) error {
	var errs []error
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(tree, f.name), f.before, f.mode); err != nil {
			errs = append(errs, fmt.Errorf("%s stays patched: %w", f.name, err))
		}
	}
	return errors.Join(errs...)
}
