package userdata

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The media types of parts that nodeadm and cloud-init know.
const (
	nodeConfigType = "application/node.eks.aws"
	scriptType     = `text/x-shellscript; charset="us-ascii"`
)

// boundary separates the parts of the document. It is lengthened if a user's part contains it.
const boundary = "JOINER"

// AL2023 returns a multipart document: the user's own parts unchanged, then ours. nodeadm merges the NodeConfigs in
// this order, and the last one wins (E-32). user is "" or a multipart document, a NodeConfig or a shell script.
// Errors: [*Error], [*LacksError], [*TooLargeError].
func AL2023(user string, n Node) (string, error) {
	if what := n.Cluster.Lacks(false); what != nil {
		return "", &LacksError{what}
	}
	parts, err := userParts(user)
	if err != nil {
		return "", err
	}
	own, err := nodeConfig(n)
	if err != nil {
		return "", err
	}
	parts = append(parts, part{kind: nodeConfigType, body: own})
	return bounded(assemble(parts))
}

// part is one part of a multipart document.
type part struct {
	header textproto.MIMEHeader // of a user's multipart document; nil for others
	kind   string               // its media type, without header
	body   []byte
}

// assemble writes the document. mime/multipart would order headers by itself, but it ends lines with \r\n. Scripts do
// not mind that, but people who read them do.
func assemble(parts []part) string {
	border := boundary
	for slices.ContainsFunc(parts, func(p part) bool { return bytes.Contains(p.body, []byte("--"+border)) }) {
		border += "X"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=%q\n", border)
	for _, p := range parts {
		fmt.Fprintf(&out, "\n--%s\n", border)
		if p.header == nil {
			fmt.Fprintf(&out, "Content-Type: %s\n", p.kind)
		}
		for _, name := range sortedKeys(p.header) {
			for _, value := range p.header[name] {
				fmt.Fprintf(&out, "%s: %s\n", name, value)
			}
		}
		out.WriteByte('\n')
		out.Write(p.body)
		if !bytes.HasSuffix(p.body, []byte("\n")) {
			out.WriteByte('\n')
		}
	}
	fmt.Fprintf(&out, "\n--%s--\n", border)
	return out.String()
}

func sortedKeys(header textproto.MIMEHeader) []string {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// userParts reads the user's part of user data.
func userParts(user string) ([]part, error) {
	trimmed := strings.TrimSpace(user)
	switch {
	case trimmed == "":
		return nil, nil
	case strings.HasPrefix(trimmed, "MIME-Version:"), strings.HasPrefix(trimmed, "Content-Type:"):
		return multiparts(trimmed)
	case strings.HasPrefix(trimmed, "#!"):
		return []part{{kind: scriptType, body: []byte(trimmed + "\n")}}, nil
	case isNodeConfig(trimmed):
		return []part{{kind: nodeConfigType, body: []byte(trimmed + "\n")}}, checkNodeConfig(trimmed, 0)
	}
	return nil, &Error{
		What: "it is no multipart document (it begins with MIME-Version:), no NodeConfig of node.eks.aws " +
			"(a document in YAML) and no script (it begins with #!)"}
}

func isNodeConfig(text string) bool {
	return strings.Contains(text, "node.eks.aws/") && strings.Contains(text, "NodeConfig")
}

// multiparts reads a user's multipart document. Bodies stay unchanged, in their transfer encoding.
func multiparts(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, &Error{What: "its headers cannot be read: want MIME-Version and Content-Type, then an empty line"}
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
		return nil, &Error{What: "its Content-Type is not multipart/mixed with a boundary"}
	}
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	var parts []part
	for number := 1; ; number++ {
		next, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &Error{
				Part: number, What: "it cannot be read: its headers or the boundary after it are not right",
			}
		}
		body, err := io.ReadAll(next)
		if err != nil {
			return nil, &Error{Part: number, What: "the boundary after it is missing"}
		}
		body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
		kind, _, _ := mime.ParseMediaType(next.Header.Get("Content-Type"))
		if kind == nodeConfigType && next.Header.Get("Content-Transfer-Encoding") == "" {
			if err := checkNodeConfig(string(body), number); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part{header: next.Header, body: body})
	}
	if len(parts) == 0 {
		return nil, &Error{What: "it is a multipart document without parts"}
	}
	return parts, nil
}

// checkNodeConfig checks that the documents of a user's NodeConfig are YAML of the right kind.
func checkNodeConfig(text string, number int) error {
	line := 1
	for document := range documents(text) {
		var config struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &config); err != nil {
			found := &Error{Part: number, What: "it is no YAML"}
			if at := lineOf.FindStringSubmatch(err.Error()); at != nil {
				within, _ := strconv.Atoi(at[1])
				found.Line = line + within - 1
			}
			return found
		}
		if strings.TrimSpace(document) != "" && config.Kind != "NodeConfig" {
			return &Error{Part: number, Line: line, What: "its kind is not NodeConfig"}
		}
		line += strings.Count(document, "\n") + 1
	}
	return nil
}

var lineOf = regexp.MustCompile(`line (\d+)`)

// documents iterates over the documents of a YAML text.
func documents(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var document strings.Builder
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "---") {
				if !yield(document.String()) {
					return
				}
				document.Reset()
				continue
			}
			document.WriteString(lines.Text() + "\n")
		}
		yield(document.String())
	}
}

// nodeConfig returns our NodeConfig. Fields are in the order of the struct and keys of maps are sorted.
func nodeConfig(n Node) ([]byte, error) {
	k := n.kubelet()
	text, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("writing spec.kubelet: %w", err)
	}
	config := map[string]any{}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("writing spec.kubelet: %w", err)
	}
	if len(n.Taints) > 0 {
		config["registerWithTaints"] = taintsOf(n.Taints)
	}
	kubelet := map[string]any{"config": config}
	if labels := n.labels(); labels != "" {
		kubelet["flags"] = []string{"--node-labels=" + labels}
	}
	spec := map[string]any{
		"cluster": map[string]any{
			"name": n.Cluster.Name, "apiServerEndpoint": n.Cluster.Endpoint, "certificateAuthority": n.Cluster.CA,
			"cidr": n.Cluster.CIDR,
		},
		"kubelet": kubelet,
	}
	if n.LocalStorage {
		spec["instance"] = map[string]any{"localStorage": map[string]any{"strategy": "RAID0"}}
	}
	return yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})
}

// taintsOf returns taints in the form of the kubelet's configuration.
func taintsOf(taints []corev1.Taint) []any {
	list := make([]any, len(taints))
	for i, t := range taints {
		entry := map[string]any{"key": t.Key, "effect": string(t.Effect)}
		if t.Value != "" {
			entry["value"] = t.Value
		}
		list[i] = entry
	}
	return list
}
