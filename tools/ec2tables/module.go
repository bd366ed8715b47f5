package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// module is a published Go module.
type module struct {
	name, version string
	sum           string // of its content, as in go.sum
	zip           string // path
}

// fetch has the go command download NAME@VERSION into its cache, and verify it against the checksum database.
func fetch(id string) (module, error) {
	name, version, ok := strings.Cut(id, "@v")
	if !ok {
		return module{}, fmt.Errorf("module %q: want MODULE@VERSION", id)
	}
	empty, err := os.MkdirTemp("", "ec2tables")
	if err != nil {
		return module{}, err
	}
	defer os.RemoveAll(empty)
	command := exec.Command("go", "mod", "download", "-json", id)
	command.Dir = empty // outside of every module, so that none is changed
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, failed := command.Output()
	var answer struct{ Zip, Sum, Error string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return module{}, fmt.Errorf("go mod download %s: %w: %s", id, failed, complaint.String())
	}
	// If a module needs a newer Go than ours, that is an error, but it was fetched and verified. It is not built here.
	if answer.Zip == "" || answer.Sum == "" {
		return module{}, fmt.Errorf("go mod download %s: %s", id, answer.Error)
	}
	m := module{name: name, version: "v" + version, sum: answer.Sum, zip: answer.Zip}
	licence, err := m.file("LICENSE")
	if err != nil {
		return module{}, err
	}
	text := strings.Join(strings.Fields(string(licence)), " ")
	if !strings.Contains(text, "Apache License Version 2.0, January 2004") {
		return module{}, fmt.Errorf("%s: its LICENSE is not the Apache License 2.0", id)
	}
	return m, nil
}

// file reads a file of the module by its path in the module.
func (m module) file(path string) ([]byte, error) {
	archive, err := zip.OpenReader(m.zip)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	f, err := archive.Open(m.name + "@" + m.version + "/" + path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
