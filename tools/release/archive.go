package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// archive packs a program with the license: a zip for Windows, else a compressed tar. It returns the file's name too.
func archive(b Build, license []byte) (name string, content []byte, err error) {
	stem := fmt.Sprintf("%s_%s_%s_%s", b.Name, strings.TrimPrefix(b.Version, "v"), b.Platform.OS, b.Platform.Arch)
	if b.Platform.OS == "windows" {
		content, err = zipped(b, license)
		return stem + ".zip", content, err
	}
	content, err = tarred(b, license)
	return stem + ".tar.gz", content, err
}

func tarred(b Build, license []byte) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	writer := tar.NewWriter(compressed)
	for _, f := range []entry{{b.Name, b.Binary, 0o755}, {"LICENSE", license, 0o644}} {
		if err := writer.WriteHeader(&tar.Header{Name: f.path, Typeflag: tar.TypeReg, Mode: f.mode,
			Size: int64(len(f.content)), ModTime: b.Time.UTC(), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(b Build, license []byte) ([]byte, error) {
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, f := range []entry{{b.Name + ".exe", b.Binary, 0o755}, {"LICENSE", license, 0o644}} {
		header := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: b.Time.UTC()}
		header.SetMode(os.FileMode(f.mode))
		file, err := writer.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeArchives writes archives in the order of builds, and SHA256SUMS as sha256sum reads it. It empties the directory
// first.
func writeArchives(directory string, builds []Build, license []byte) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, b := range builds {
		name, content, err := archive(b, license)
		if err != nil {
			return fmt.Errorf("archive of %s for %s: %w", b.Name, b.Platform, err)
		}
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(directory, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
