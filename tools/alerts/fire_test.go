package alerts

import (
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// noCertificate is a source that has no certificate yet.
type noCertificate struct{}

// GetCertificate returns none.
func (noCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("none")
}

// well are the samples of a healthy cluster, for 28 hours.
var well = []string{
	`autonode_conformance_checked_timestamp_seconds 0+60x1700`,
	`node_scheduling_policy_scheduler_read_timestamp_seconds 0+60x1700`,
	`joiner_webhook_certificate_expiry_timestamp_seconds 7776000x1700`,
	`joiner_webhook_rejected_total 0x1700`,
	`autonode_altered_writes_total{kind="NodePool"} 0x1700`,
	`node_scheduling_policy_group_mode{group="ControlPlane",mode="Enable"} 1x1700`,
	`node_scheduling_policy_nodes{group="ControlPlane",tainted="false"} 0x1700`,
	`joiner_leader 1x1700`,
}

// with returns the samples of well, with some of them added or replaced.
func with(samples ...string) []string {
	all := append([]string{}, samples...)
	for _, series := range well {
		name, _, _ := strings.Cut(series, " ")
		replaced := false
		for _, other := range samples {
			replaced = replaced || strings.HasPrefix(other, name+" ")
		}
		if !replaced {
			all = append(all, series)
		}
	}
	return all
}

// fires is an alert over samples; testdata/fires.yaml explains it.
type fires struct {
	Alert, Party, Severity string
	Samples                []string
	Before, During, After  int
	Starts                 int // how often it starts to fire; 0: once
	Text                   string
}

// read reads a table.
func read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// U-10: each alert fires over its samples, once and without a break, and stops. No other alert fires.
func TestA43_EachAlertFiresAndStops(t *testing.T) {
	t.Parallel()
	fired, table := map[string]bool{}, []fires{}
	read(t, "fires", &table)
	for _, test := range table {
		minutes := make([]int, test.After+1)
		for minute := range minutes {
			minutes[minute] = minute
		}
		found := history(t, with(test.Samples...), minutes...)
		if got, want := starts(found, minutes), max(test.Starts, 1); got != want {
			t.Errorf("%s of %s over %q starts to fire %d times, want %d", test.Alert, test.Party, test.Samples, got,
				want)
		}
		for minute, want := range map[int]int{test.Before: 0, test.During: 1, test.After: 0} {
			if len(found[minute]) != want {
				t.Errorf("%s of %s over %q: in minute %d fire %v, want %d", test.Alert, test.Party, test.Samples,
					minute, found[minute], want)
			}
		}
		if len(found[test.During]) == 1 {
			test.check(t, found[test.During][0])
		}
		fired[test.Alert+" "+test.Severity] = true
	}
	for _, a := range alerts(t) {
		if !fired[a.Alert+" "+a.Labels["severity"]] {
			t.Errorf("no samples make %s with severity %s fire", a.Alert, a.Labels["severity"])
		}
	}
}

// starts counts the minutes in which something fires and nothing did in the minute before.
func starts(found map[int][]firing, minutes []int) (count int) {
	for _, minute := range minutes {
		if len(found[minute]) > 0 && len(found[minute-1]) == 0 {
			count++
		}
	}
	return count
}

// check compares what fires with what is wanted.
func (f fires) check(t *testing.T, got firing) {
	t.Helper()
	if got.name != f.Alert || got.party != f.Party || got.severity != f.Severity || !strings.Contains(got.description,
		f.Text) {
		t.Errorf("over %q fires %+v, want %+v", f.Samples, got, f)
	}
	for _, text := range []string{got.summary, got.description} {
		for _, wrong := range []string{"{{", "<no value>", "<error"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s says %q", f.Alert, text)
			}
		}
	}
}

// over a healthy cluster nothing fires. Nor does anything over dry runs, another mode, nodes of a group that is
// not enabled, entries that are fine, and objects with an unknown cause or being replaced.
func TestA43_NothingFiresWithoutCause(t *testing.T) {
	t.Parallel()
	var quiet [][]string
	read(t, "quiet", &quiet)
	for _, samples := range append(quiet, nil) {
		for minute, found := range history(t, with(samples...), 15, 30, 60, 120, 150) {
			if len(found) > 0 {
				t.Errorf("over %q: in minute %d %+v fire", samples, minute, found)
			}
		}
	}
}
