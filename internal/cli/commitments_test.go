package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// K-55. joinerctl plans with the commitments of a file, and says what they pay; a file that cannot be read is told.
func TestK55_JoinerctlTakesCommitments(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "commitments.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("commitments:\n- {name: ours, instances: 2}\n")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"simulate", "-f", "../../examples/simulate"}, []string{"~0.000 on-demand, ours pays"}},
		{[]string{"simulate", "-f", "../../examples/simulate", "--until", "quiet", "--scale", "shop/web=1"},
			[]string{"paid by commitments"}},
		{[]string{"status", "-f", "../../examples/explain"}, []string{"Commitment ours: 2 of 2 instances used\n"}},
	} {
		code, out, failures := ran(t, "", append(test.args, "--commitments-file", path)...)
		for _, want := range test.want {
			if code == cli.CodeFailed || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, %s\n%s\nwant %q", test.args, code, failures, out, want)
			}
		}
	}
	write("commitments:\n- {name: ours, instances: -2}\n")
	code, _, failures := ran(t, "", "status", "-f", "../../examples/explain", "--commitments-file", path)
	if want := "--commitments-file " + path +
		": commitments[0].instances is -2: want a number above 0"; code != cli.CodeFailed ||
		!strings.Contains(failures, want) {
		t.Errorf("exit code %d, %q, want %q", code, failures, want)
	}
}
