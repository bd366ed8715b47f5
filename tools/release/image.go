package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// rootsPath is where Go's TLS looks first on Linux. A volume mounted there replaces what the image has.
	rootsPath = "etc/ssl/certs/ca-certificates.crt"
	// user is a UID and GID that no account of a node has.
	user = "65532:65532"
	// annotation is the prefix of the image specification's own annotations.
	annotation = "org.opencontainers.image."
)

// roots returns the certificates of the authorities that browsers trust, as PEM. It leaves out those whose trust ends
// on some day: a file of certificates cannot say that.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return out.Bytes()
}

// entry is a file of a layer, or a directory when content is nil.
type entry struct {
	path    string
	content []byte
	mode    int64
}

// layer packs files in their order, owned by root, with the time of the commit.
func layer(b Build, files ...entry) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, f := range files {
		header := &tar.Header{Name: f.path, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.content)),
			ModTime: b.Time.UTC(), Format: tar.FormatPAX}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// image returns the image of a program, without a base image. Certificates are in a layer of their own, which images
// of one release share.
func image(b Build) (v1.Image, error) {
	certificates, err := layer(b, entry{path: "etc/", mode: 0o755}, entry{path: "etc/ssl/", mode: 0o755},
		entry{path: "etc/ssl/certs/", mode: 0o755}, entry{path: rootsPath, content: roots(), mode: 0o644})
	if err != nil {
		return nil, err
	}
	program, err := layer(b, entry{path: b.Name, content: b.Binary, mode: 0o755})
	if err != nil {
		return nil, err
	}
	made := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if made, err = mutate.AppendLayers(made, certificates, program); err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = b.Platform.OS, b.Platform.Arch
	config.Created = v1.Time{Time: b.Time.UTC()}
	config.Config = v1.Config{Entrypoint: []string{"/" + b.Name}, User: user, WorkingDir: "/", Labels: about(b)}
	for i := range config.History {
		config.History[i] = v1.History{Created: config.Created, CreatedBy: "release"}
	}
	return mutate.ConfigFile(made, config)
}

// about returns annotations of the image specification. They are also labels, since not everybody reads annotations.
func about(b Build) map[string]string {
	said := map[string]string{annotation + "title": b.Name, annotation + "version": b.Version,
		annotation + "licenses": "Apache-2.0"}
	if b.Revision != "" {
		said[annotation+"revision"] = b.Revision
		said[annotation+"created"] = b.Time.UTC().Format("2006-01-02T15:04:05Z")
	}
	return said
}

// index returns the images of one program, one for each platform, in the order of builds.
func index(builds []Build) (v1.ImageIndex, error) {
	made := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range builds {
		one, err := image(b)
		if err != nil {
			return nil, fmt.Errorf("image of %s for %s: %w", b.Name, b.Platform, err)
		}
		made = mutate.AppendManifests(made, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: b.Platform.OS, Architecture: b.Platform.Arch}}})
	}
	return mutate.Annotations(made, about(builds[0])).(v1.ImageIndex), nil
}

// writeLayout writes an OCI layout whose one entry is the index, named by its version. It empties the directory first.
func writeLayout(directory string, builds []Build) (v1.Hash, error) {
	made, err := index(builds)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.RemoveAll(directory); err != nil {
		return v1.Hash{}, err
	}
	at, err := layout.Write(directory, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	name := map[string]string{annotation + "ref.name": builds[0].Version}
	if err := at.AppendIndex(made, layout.WithAnnotations(name)); err != nil {
		return v1.Hash{}, err
	}
	return made.Digest()
}
