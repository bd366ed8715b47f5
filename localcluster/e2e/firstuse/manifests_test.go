package firstuse

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// filesOfPrograms returns kinds that programs read from files and no API server takes.
func filesOfPrograms() map[string]string {
	return map[string]string{
		"JoinerConfig":               "of --config",
		"NodeSchedulingPolicyConfig": "of the node scheduling policy",
		"AdmissionConfiguration":     "of kube-apiserver",
	}
}

// U-12: an API server with the kinds of all sorts of clusters takes every manifest of the users' pages. The requests
// are dry runs, so manifests do not depend on each other.
func TestU12_ManifestsOfPagesAreTaken(t *testing.T) {
	t.Parallel()
	r := &reader{terminal: open(t)}
	r.makeUp(block{text: "make up\n"})
	for _, folder := range []string{"management", "guest", "openshift", "nodescheduling"} {
		r.works("kubectl apply --server-side -f api/crd/" + folder)
	}
	r.works("kubectl wait crd --all --for=condition=Established --timeout=2m")
	r.works("kubectl delete nodepools --all") // a page may show one of that name for machines of another provider
	field := func(name, document string) string {
		found := regexp.MustCompile(`(?m)^` + name + `: ([^\s#]+)`).FindStringSubmatch(document)
		if found == nil {
			return ""
		}
		return found[1]
	}
	namespace := regexp.MustCompile(`\bnamespace: ([a-z0-9-]+)`)
	seen, taken := 0, 0
	for page, text := range userPages(t) {
		for _, b := range blocksOf(text) {
			for document := range strings.SplitSeq(b.text, "\n---\n") {
				kind := field("kind", document)
				if b.language != "yaml" || field("apiVersion", document) == "" || kind == "" {
					continue // a part of a manifest, or a file of another form
				}
				if seen++; filesOfPrograms()[kind] != "" {
					continue
				}
				for _, found := range namespace.FindAllStringSubmatch(document, -1) {
					r.typed("kubectl create namespace " + found[1]) // it may be there
				}
				document = strings.ReplaceAll(document, "caBundle: ...", "") // which the reader fills in
				r.script("manifest", "cat <<'END'\n"+document+"\nEND\n")
				r.script("try", "manifest | kubectl apply --dry-run=server -f -\n")
				if said, code := r.typed("try"); code != 0 {
					t.Errorf("%s: the manifest of a %s is not taken: %s", page, kind, said)
				}
				taken++
			}
		}
	}
	const fewest = 15
	if taken < fewest {
		t.Errorf("only %d of %d manifests were tried", taken, seen)
	}
	r.stop(r.up, "kwok")
}

// userPages returns the pages for users of Joiner, by name.
func userPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"README.md": pageOf(t, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" || strings.Contains(name, "/spec/") ||
			strings.Contains(name, "/adr/") {
			return err
		}
		content, err := os.ReadFile(name)
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
