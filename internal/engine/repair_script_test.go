package engine_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// repair prints what becomes of unhealthy nodes in a round. policy=(CONDITION:STATUS:REASON:SECONDS:PRIORITY:ACT) are
// those of all nodes, with - for no pattern and :SECONDS behind it for the most that the drain may take;
// sick=(NODE:CONDITION:STATUS:REASON:SINCE) are conditions of nodes; rebooted=(NODE:TIMES:WHEN), noreboot=(NODE),
// vetoed=(NODE), ending=(NODE) and decided=(NODE) are what else is known.
func repair(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
	t.Helper()
	words := map[string][][]string{}
	for _, arg := range d.CmdArgs {
		for _, value := range arg.Vals {
			words[arg.Key] = append(words[arg.Key], strings.Split(value, ":"))
		}
	}
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			d.Fatalf(t, "%s: want a number", word)
		}
		return n
	}
	var policies []engine.RepairPolicy
	for _, w := range words["policy"] {
		p := engine.RepairPolicy{Condition: w[0], Status: w[1], Tolerated: number(w[3]), Priority: int(number(w[4])),
			Reboot: w[5] == "reboot"}
		if w[2] != "-" {
			p.Reason = regexp.MustCompile(w[2])
		}
		if p.Bounded = len(w) > 6; p.Bounded {
			p.Drain = number(w[6])
		}
		policies = append(policies, p)
	}
	var patients []engine.Patient
	for _, node := range s.Nodes {
		of := func(kind string) (list [][]string) {
			for _, w := range words[kind] {
				if w[0] == node.ID() {
					list = append(list, w)
				}
			}
			return list
		}
		p := engine.Patient{Node: node, Zone: node.Labels[corev1.LabelTopologyZone], Policies: policies,
			Vetoed: of("vetoed") != nil, Ending: of("ending") != nil, Decided: of("decided") != nil,
			NoReboot: of("noreboot") != nil}
		for _, w := range of("sick") {
			p.Conditions = append(p.Conditions, engine.NodeCondition{Type: w[1], Status: w[2],
				Reason: strings.TrimPrefix(w[3], "-"), Since: number(w[4])})
		}
		for _, w := range of("rebooted") {
			p.Reboots, p.RebootedAt = int(number(w[1])), number(w[2])
		}
		patients = append(patients, p)
	}
	known := func(w []string) bool {
		return slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool { return n.ID() == w[0] })
	}
	for _, kind := range []string{"sick", "rebooted", "noreboot", "vetoed", "ending", "decided"} {
		for _, w := range words[kind] {
			if !known(w) {
				d.Fatalf(t, "%s=%s: there is no such node", kind, w[0])
			}
		}
	}
	paused := ""
	if d.HasArg("paused") {
		d.ScanArgs(t, "paused", &paused)
	}
	var b strings.Builder
	list, next := engine.Repair(terms(t, d), patients, strings.ReplaceAll(paused, "_", " "))
	for _, treatment := range list {
		fmt.Fprintln(&b, treatment.String(patients))
	}
	if next != 0 {
		fmt.Fprintf(&b, "the next one is due at %d\n", next)
	}
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return enginetest.Shorten(b.String())
}

// replaceFirst prints what has to come before an unhealthy node goes: node=NODE.
func replaceFirst(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
	t.Helper()
	var name string
	d.ScanArgs(t, "node", &name)
	claim := name
	for _, node := range s.Nodes {
		if node.ID() == name {
			claim = node.Claim
		}
	}
	p, why := engine.ReplaceFirst(s, terms(t, d), claim)
	if why != "" {
		return "it goes at once: " + why + "\n"
	}
	return enginetest.Shorten(p.String())
}
