package charts_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/cli"
)

const (
	runbooks       = "../docs/runbooks"
	monitoringPage = "../docs/monitoring.md"
)

// alert has the parts of a rule that concern the pages.
type alert struct {
	Alert  string
	Labels map[string]string
}

// alertsOf returns the alerts of all charts.
func alertsOf(t *testing.T) (all []alert) {
	t.Helper()
	for chart := range monitored() {
		content, err := charts.Alerts(chart, "x")
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Groups []struct{ Rules []alert } }
		if err := yaml.Unmarshal(content, &file); err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Groups {
			all = append(all, group.Rules...)
		}
	}
	return all
}

// pagesOfRunbooks returns the pages by the names of their alerts.
func pagesOfRunbooks(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob(runbooks + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, name := range found {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[strings.TrimSuffix(filepath.Base(name), ".md")] = string(content)
	}
	return pages
}

// each alert has a page, and each page an alert. All pages say in the same order what the person on call needs
// to know. The list of alerts has them all, with their parties.
func TestA44_EachAlertHasAPage(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(monitoringPage)
	if err != nil {
		t.Fatal(err)
	}
	pages, named := pagesOfRunbooks(t), map[string]bool{}
	for _, a := range alertsOf(t) {
		named[a.Alert] = true
		if pages[a.Alert] == "" {
			t.Errorf("%s has no page in docs/runbooks", a.Alert)
		}
		if party := a.Labels["party"]; !strings.Contains(pages[a.Alert], party) {
			t.Errorf("the page of %s does not speak of the party %s", a.Alert, party)
		}
		row := regexp.MustCompile(`(?m)^\| \[` + a.Alert + `\]\(runbooks/` + a.Alert + `\.md\) \|.*` +
			a.Labels["severity"]).Find(list)
		if row == nil || !bytes.Contains(row, []byte(a.Labels["party"])) {
			t.Errorf("%s does not list %s with the severity %s and the party %q", monitoringPage, a.Alert,
				a.Labels["severity"], a.Labels["party"])
		}
	}
	for name, content := range pages {
		if !named[name] {
			t.Errorf("the page %s is of no alert", name)
		}
		var sections []string
		for line := range strings.SplitSeq(content, "\n") {
			if strings.HasPrefix(line, "#") {
				sections = append(sections, line)
			}
		}
		if want := []string{"# " + name, "## Meaning", "## Impact", "## Find out", "## Mend",
			"## Silence"}; !slices.Equal(sections, want) {
			t.Errorf("the page %s has the sections %q, want %q", name, sections, want)
		}
		for _, link := range regexp.MustCompile(`\]\(([A-Za-z]+)\.md\)`).FindAllStringSubmatch(content, -1) {
			if pages[link[1]] == "" {
				t.Errorf("the page %s leads to %s, which is not there", name, link[1])
			}
		}
	}
}

// verbs are those of kubectl that the pages use.
var verbs = []string{"get", "describe", "logs", "auth", "taint", "run"}

// builtIn are kinds of Kubernetes and of Prometheus' operator that the pages name.
var builtIn = []string{
	"pods", "nodes", "events", "namespace", "namespaces", "configmap", "secret", "secrets", "role", "rolebinding",
	"customresourcedefinitions",
	"mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	"validatingadmissionpolicies",
	"validatingadmissionpolicybindings", "validatingadmissionpolicies.admissionregistration.k8s.io",
	"validatingwebhookconfigurations",
	"podmonitors", "servicemonitors", "leases", "poddisruptionbudgets", "schedulers.config.openshift.io",
}

// kinds returns those and ours.
func kinds(t *testing.T) []string {
	t.Helper()
	known := slices.Clone(builtIn)
	for _, definitions := range []func() (map[string][]byte, error){crd.Management, crd.Guest, crd.Manifests,
		crd.NodeScheduling} {
		found, err := definitions()
		if err != nil {
			t.Fatal(err)
		}
		for name := range found {
			group, plural, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "_")
			known = append(known, plural, plural+"."+group)
		}
	}
	return known
}

// joinerctl and kubectl have the commands of the pages, and the kinds in them exist.
func TestA44_TheCommandsOfThePagesExist(t *testing.T) {
	t.Parallel()
	known, commands := kinds(t), 0
	for name, content := range pagesOfRunbooks(t) {
		for i, block := range strings.Split(content, "```") {
			if i%2 == 0 {
				continue
			}
			lines, found := strings.CutPrefix(block, "sh\n")
			if !found {
				t.Errorf("%s: a block is no shell: %s", name, block)
			}
			for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
				for part := range strings.SplitSeq(line, " | ") {
					commands++
					if words := strings.Fields(part); words[0] == "joinerctl" {
						checkJoinerctl(t, name, words[1:])
					} else {
						checkKubectl(t, name, words, known)
					}
				}
			}
		}
	}
	if commands < 40 {
		t.Errorf("only %d commands were looked at", commands)
	}
}

func checkJoinerctl(t *testing.T, page string, arguments []string) {
	t.Helper()
	path := arguments[:min(2, len(arguments))] // a command, or a command and what it is about
	if len(path) == 2 && strings.HasPrefix(path[1], "-") {
		path = path[:1]
	}
	var out, failed bytes.Buffer
	config := cli.Config{In: strings.NewReader(""), Out: &out, Err: &failed}
	if code := cli.Run(t.Context(), config, append(arguments, "--help")); code != cli.CodeFine ||
		!strings.Contains(out.String(), "joinerctl "+strings.Join(path, " ")) {
		t.Errorf("%s: joinerctl %v ends with %d: %s", page, arguments, code, failed.String())
	}
}

func checkKubectl(t *testing.T, page string, words, known []string) {
	t.Helper()
	if words[0] != "kubectl" || !slices.Contains(verbs, words[1]) {
		t.Errorf("%s: %v is no command that is known: want kubectl with one of %v", page, words, verbs)
		return
	}
	var about string
	switch words[1] {
	case "get", "describe", "taint":
		about = words[2]
	case "auth":
		if words[2] != "can-i" {
			t.Errorf("%s: kubectl auth %s", page, words[2])
		}
		about = words[4]
	case "logs":
		if !strings.HasPrefix(words[2], "deployment/joiner") {
			t.Errorf("%s: logs of %s", page, words[2])
		}
	}
	for kind := range strings.SplitSeq(about, ",") {
		if kind != "" && kind != "--raw" && !slices.Contains(known, kind) {
			t.Errorf("%s: %v is about %s, which is no kind", page, words, kind)
		}
	}
}
