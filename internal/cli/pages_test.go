package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// notTyped are commands of the pages that are not run here, each with the reason.
func notTyped() map[string]string {
	return map[string]string{
		"explain pod shop/huge": "takes a cluster in which Karpenter decides: TestU20_WhereKarpenterDecidesThatIsSaid",
	}
}

// TestU12_CommandsOfPagesAreRun: README and the pages of joinerctl show commands with their output. Each is run and
// must print that, or it is listed with the reason why not.
func TestU12_CommandsOfPagesAreRun(t *testing.T) {
	t.Parallel()
	typed := regexp.MustCompile(`(?m)^\$ joinerctl (.+)$|^go run \./cmd/joinerctl (.+?) +#`)
	seen, left := 0, notTyped()
	for _, page := range []string{"../../README.md", "../../docs/simulate.md", "../../docs/explain.md",
		"../../docs/joinerctl.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range typed.FindAllStringSubmatch(string(text), -1) {
			line := found[1] + found[2]
			if seen++; left[line] != "" {
				delete(left, line)
				continue
			}
			code, out, failures := run(t, nil, "",
				strings.Fields(strings.ReplaceAll(line, " examples/", " ../../examples/"))...)
			if code == cli.CodeFailed || failures != "" || out == "" {
				t.Errorf("%s: joinerctl %s ended with %d: %s", page, line, code, failures)
			}
			if found[1] != "" {
				shows(t, page, "$ joinerctl "+line+"\n", out)
			}
		}
	}
	const fewest = 14
	if seen < fewest {
		t.Errorf("only %d commands were found, want %d", seen, fewest)
	}
	for line := range left {
		t.Errorf("no page shows joinerctl %s any more", line)
	}
}
