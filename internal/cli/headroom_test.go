package cli_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// TestK54_HeadroomIsSetShownAndCleared: set writes the two annotations over existing ones, and nothing else. show
// reads the annotations and the condition. clear removes both annotations.
func TestK54_HeadroomIsSetShownAndCleared(t *testing.T) {
	t.Parallel()
	client := standing(t, nil)
	annotations := func() map[string]string {
		t.Helper()
		pool, err := client.Resource(nodePools).Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pool.GetAnnotations()
	}
	expect := func(want string, wantCode int, args ...string) {
		t.Helper()
		code, out, failures := run(t, client, "", append([]string{"headroom"}, args...)...)
		if code != wantCode || out != want || failures != "" {
			t.Errorf("%v: exit %d, %q\n%s\nwant %d\n%s", args, code, failures, out, wantCode, want)
		}
	}
	expect("no NodePool keeps room free\n", cli.CodeFine, "show")
	expect("NodePool default would keep 10% free\n", cli.CodeFine, "set", "default", "10%", "--dry-run")
	if len(annotations()) != 0 || len(writes(client)) != 0 {
		t.Errorf("a dry run wrote %v", annotations())
	}
	expect("NodePool default keeps 10% free\n", cli.CodeFine, "set", "default", "10%")
	expect("NodePool default keeps 10% free, as before\n", cli.CodeFine, "set", "default", "10%")
	expect("NODEPOOL   HEADROOM   SCHEDULE   STANDS\ndefault    10%        -          nobody has looked at it yet\n",
		cli.CodeFine, "show")
	expect("NodePool default keeps cpu=20,memory=80Gi free at 0 7 * * 1-5 for 12h in Europe/Berlin\n", cli.CodeFine,
		"set", "default",
		"cpu=20,memory=80Gi", "--schedule", "0 7 * * 1-5", "--for", "12h", "--time-zone", "Europe/Berlin")
	if got := annotations(); got["joiner.sh/headroom"] != "cpu=20,memory=80Gi" ||
		got["joiner.sh/headroom-schedule"] != "0 7 * * 1-5 for 12h in Europe/Berlin" || len(got) != 2 {
		t.Errorf("written: %v", got)
	}
	expect("NodePool default keeps 5% free\n", cli.CodeFine, "set", "default", "5%") // and no schedule any more
	if got := annotations(); got["joiner.sh/headroom"] != "5%" || len(got) != 1 {
		t.Errorf("written: %v", got)
	}
	if code, out, _ := run(t, client, "", "headroom", "show", "-o", "json"); code != cli.CodeFine ||
		!strings.Contains(out, `"headroom": "5%"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	expect("NODEPOOL   HEADROOM   SCHEDULE   STANDS\nbatch      -          -          it keeps no room free\n",
		cli.CodeFine, "show", "batch")
	expect("NodePool default keeps no room free\n", cli.CodeFine, "clear", "default")
	expect("NodePool default keeps no room free, as before\n", cli.CodeFine, "clear", "default")
	if len(annotations()) != 0 {
		t.Errorf("left: %v", annotations())
	}
	if got := strings.Join(writes(client), ","); got != strings.TrimSuffix(strings.Repeat("patch nodepools,", 4),
		",") {
		t.Errorf("written: %s", got)
	}
}

// TestK54_WhatHeadroomShowFinds: a value that is not understood is a finding, and so is room that is missing. Headroom
// that is not asked for now is none.
func TestK54_WhatHeadroomShowFinds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		value, condition string
		code             int
		says             string
	}{
		"not understood": {"lots", "", cli.CodeFindings,
			`annotation joiner.sh/headroom is "lots": want a share from 1% to 1000%`},
		"there": {"10%", `status: "True", reason: Kept, message: "10%: there is room for 2 pods"`,
			cli.CodeFine, "Kept 10%: there is room for 2 pods"},
		"a limit": {"10%", `status: "False", reason: LimitReached, message: "10%: none"`, cli.CodeFindings,
			"LimitReached 10%: none"},
		"not now": {"10%", `status: "False", reason: NotNow, message: later`, cli.CodeFine, "NotNow later"},
	} {
		with := []string{"metadata: {name: default}\nspec:\n  limits",
			"metadata: {name: default, annotations: {joiner.sh/headroom: \"" +
				row.value + "\"}}\n" + "status: {conditions: [{type: Headroom, " + row.condition +
				", lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}\nspec:\n  limits"}
		if row.condition == "" {
			with[1] = strings.ReplaceAll(with[1],
				"status: {conditions: [{type: Headroom, , lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}\n", "")
		}
		code, out, failures := run(t, standing(t, nil, with...), "", "headroom", "show")
		if code != row.code || failures != "" || !strings.Contains(out, row.says) {
			t.Errorf("%s: exit %d, %q\n%s", name, code, failures, out)
		}
	}
}

// TestK54_HeadroomRefusesWhatItCannotBe: before anything is written, with what is allowed.
func TestK54_HeadroomRefusesWhatItCannotBe(t *testing.T) {
	t.Parallel()
	client := standing(t, nil, "metadata: {name: batch}\nspec:\n", "metadata: {name: batch}\nspec:\n  replicas: 2\n")
	for says, args := range map[string][]string{
		`the headroom is "10": want a share from 1% to 1000% such as 10%`:   {"set", "default", "10"},
		`the headroom is "cpu=lots": cpu is "lots"; want an amount above 0`: {"set", "default", "cpu=lots"},
		"--schedule says when it begins: give --for too": {"set", "default", "10%", "--schedule",
			"@daily"},
		"give --schedule too, or leave them out": {"set", "default", "10%", "--for", "2h"},
		`timeZone is "Berlin": want a name of the IANA database`: {"set", "default", "10%",
			"--schedule", "@daily", "--for", "1h", "--time-zone", "Berlin"},
		"there is no NodePool vanished":                                             {"set", "vanished", "10%"},
		"NodePool batch is static: spec.replicas is how many nodes it keeps":        {"set", "batch", "10%"},
		"headroom set takes two arguments, the name of a NodePool and the headroom": {"set", "default"},
		"headroom clear takes one argument, the name of a NodePool: there are 0":    {"clear"},
		"there is no NodePool away":                                                 {"show", "away"},
	} {
		code, out, failures := run(t, client, "", append([]string{"headroom"}, args...)...)
		if code != cli.CodeFailed || out != "" || !strings.Contains(failures, says) {
			t.Errorf("%v: exit %d, %q, %q; want %q", args, code, out, failures, says)
		}
	}
	if len(writes(client)) != 0 {
		t.Errorf("written: %v", writes(client))
	}
}
