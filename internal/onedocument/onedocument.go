// Package onedocument refuses a file with several YAML documents where one is expected: the parsers read the first and
// silently ignore the others. It is pure.
package onedocument

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Check returns an error with the number of documents, if more than one has content. Comments are not content.
func Check(text []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	full := 0
	for {
		document, err := reader.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if hasContent(document) {
			full++
		}
	}
	if full > 1 {
		return fmt.Errorf("it has %d YAML documents, with --- between them: want one", full)
	}
	return nil
}

func hasContent(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) && !bytes.Equal(line, []byte("...")) {
			return true
		}
	}
	return false
}
