package dump

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// redactedAlike checks that a picture without its names is planned for alike, and can be written and read.
func redactedAlike(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, s *cluster.Snapshot) {
	d := made(t, s, terms(s))
	for _, how := range []Redaction{RedactNames, RedactAll} {
		before := written(t, d)
		own, _, same, err := Redact(d, how)
		if err != nil {
			t.Fatal(err)
		}
		if !same {
			t.Fatalf("without names (%s) the engine plans differently:\n%s\nwith them\n%s", how,
				own.Plans[0].Plan.String(), d.Plans[0].Plan.String())
		}
		data := written(t, own)
		if again := written(t, readBack(t, data)); !bytes.Equal(data, again) {
			t.Fatal("what was redacted is not what was read")
		}
		if !bytes.Equal(before, written(t, d)) {
			t.Fatal("redaction has changed the original")
		}
	}
}

// TestU06_RanksKeepTheOrder: without their names random clusters are planned for alike.
func TestU06_RanksKeepTheOrder(t *testing.T) {
	t.Parallel()
	for name, script := range generators() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s, err := enginetest.Parse(script(t))
				if err != nil {
					t.Fatal(err)
				}
				redactedAlike(t, s)
			})
		})
	}
}

// TestU06_TheEnginesScriptsWithoutNames: the same for the engine's scripts.
func TestU06_TheEnginesScriptsWithoutNames(t *testing.T) {
	t.Parallel()
	scripts(t, func(t *testing.T, _ *datadriven.TestData, s *cluster.Snapshot) { redactedAlike(t, s) })
}

// TestU40_WhatRedactionTakesAway: no name is left, and with RedactAll no custom keys, resources or zones either. The
// key has them.
func TestU40_WhatRedactionTakesAway(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse(`
		namespace sec-ns labels=kubernetes.io/metadata.name=sec-ns,owner=sec-owner
		type m cpu=4 mem=8Gi od=0.1 sec.com/fpga=1 zones=sec-zone
		pool sec-pool need=secteam=sec-red taint=sec-taint=sec-value:NoSchedule
		node sec-node type=m pool=sec-pool zone=sec-zone
		pod sec-running ns=sec-ns cpu=1 node=sec-node labels=app=sec-app
		pod sec-waits ns=sec-ns cpu=9 need=secteam=sec-red tolerate=sec-taint=sec-value labels=app=sec-app,tier=7 apart=host
		pod sec-blocked ns=sec-ns cpu=1 blocked=volume_sec-volume_is_missing
		daemon sec-daemon ns=sec-ns cpu=1
		pdb sec-pdb ns=sec-ns of=app=sec-app`)
	if err != nil {
		t.Fatal(err)
	}
	s.Nodes[0].Held = "PodDisruptionBudget sec-ns/sec-pdb"
	s.Nodes[0].For, s.Nodes[0].ClaimUID = []string{"sec-ask", s.Nodes[0].Pods[0].Shape.Ask()}, "sec-uid"
	d := made(t, s, terms(s))
	for how, stays := range map[Redaction][]string{
		RedactNames: {"sec-zone", "sec.com/fpga", "sec-taint", "secteam"}, RedactAll: nil,
	} {
		own, key, same, err := Redact(d, how)
		if err != nil || !same {
			t.Fatal(err, same)
		}
		text := unpacked(t, written(t, own))
		var left []string
		for i := range text {
			if word := text[i:]; strings.HasPrefix(word, "sec") && !strings.HasPrefix(word, "second") {
				if !slices.ContainsFunc(stays, func(s string) bool { return strings.HasPrefix(word, s) }) {
					left = append(left, word[:20])
				}
			}
		}
		if len(left) > 0 {
			t.Errorf("%s leaves %v in\n%s", how, left, text)
		}
		for _, name := range []string{"pod sec-waits", "node sec-node", "namespace sec-ns", "pool sec-pool",
			"ask sec-ask"} {
			kind, name, _ := strings.Cut(name, " ")
			found := false
			for now, then := range key[kind] {
				found = found || then == name && strings.Contains(text, now)
			}
			if !found {
				t.Errorf("%s: the key does not have %s %s: %v", how, kind, name, key)
			}
		}
		if !strings.Contains(text, `"tier":"7"`) && how == RedactNames {
			t.Errorf("a small number is gone:\n%s", text)
		}
	}
	if own, key, same, err := Redact(d, RedactNone); err != nil || key != nil || !same ||
		!bytes.Equal(written(t, own), written(t, d)) {
		t.Error(fmt.Sprint("none takes something away ", err))
	}
}
