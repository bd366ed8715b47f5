package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// maxFile bounds the size of a file, in bytes.
const maxFile = 64 << 20

// readFiles reads the objects of files and folders. Each document that is no object adds an error that names it.
func readFiles(in io.Reader, names []string) ([]migrate.Object, error) {
	var objects []migrate.Object
	var faults []error
	for _, name := range names {
		paths, err := expand(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, path := range paths {
			found, err := readFile(in, path)
			objects = append(objects, found...)
			faults = append(faults, err)
		}
	}
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	if more := len(faults) - maxErrors; more > 0 {
		faults = append(faults[:maxErrors], fmt.Errorf("and %d more", more))
	}
	return objects, errors.Join(faults...)
}

// expand returns the manifests in a folder and below it, in order; for a file it returns the file.
func expand(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("-f %s: %w", name, err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var paths []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("-f %s: %w", name, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("-f %s: the folder has no .yaml, .yml or .json file", name)
	}
	return paths, nil
}

func readFile(in io.Reader, path string) ([]migrate.Object, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	// One byte more than allowed, to tell files that are too large from those that end exactly there.
	content := &io.LimitedReader{R: in, N: maxFile + 1}
	objects, err := readDocuments(path, content)
	if content.N == 0 {
		return objects, fmt.Errorf("%s has more than %d bytes: split it", path, maxFile)
	}
	return objects, err
}

// readDocuments reads the documents of a stream. Documents that are empty or hold only comments are left out.
func readDocuments(name string, in io.Reader) ([]migrate.Object, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var objects []migrate.Object
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		where := fmt.Sprintf("%s, document %d", name, number)
		if err != nil {
			return objects, fmt.Errorf("%s: %w", where, err)
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return objects, fmt.Errorf("%s: %s", where, strings.Join(strings.Fields(err.Error()), " "))
		}
		if string(data) == "null" {
			continue
		}
		content, err := convert.Decode(data)
		if err != nil {
			return objects, fmt.Errorf("%s: it is not an object", where)
		}
		items, err := flatten(where, content)
		objects = append(objects, items...)
		if err != nil {
			return objects, err
		}
	}
}

// flatten returns the items of a List, or the object itself. An item that is no object is an error.
func flatten(where string, content map[string]any) ([]migrate.Object, error) {
	items, isList := content["items"].([]any)
	kind, _ := content["kind"].(string)
	if !isList || !strings.HasSuffix(kind, "List") {
		return []migrate.Object{{Where: where, Content: content}}, nil
	}
	var objects []migrate.Object
	for i, item := range items {
		o, isObject := item.(map[string]any)
		if !isObject {
			return objects, fmt.Errorf("%s: items[%d] is not an object", where, i)
		}
		objects = append(objects, migrate.Object{Where: where, Content: o})
	}
	return objects, nil
}
