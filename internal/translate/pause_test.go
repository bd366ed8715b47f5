package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// TestU27_WhatTheSwitchSays: a pause ends at its time and not a second earlier. An invalid value pauses and is
// reported. Values from before there was an end keep their meaning.
func TestU27_WhatTheSwitchSays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		paused, until string
		on            bool
		fault         string
	}{
		"nothing":         {},
		"false":           {paused: "false", until: "2026-03-02T13:00:00Z"},
		"as before":       {paused: "true", on: true},
		"a word":          {paused: "yes", on: true, fault: `paused is "yes": want true or false; it counts as true`},
		"an hour to go":   {paused: "true", until: "2026-03-02T13:00:00Z", on: true},
		"a second to go":  {paused: "true", until: "2026-03-02T12:00:01Z", on: true},
		"now":             {paused: "true", until: "2026-03-02T12:00:00Z"},
		"another zone":    {paused: "true", until: "2026-03-02T12:59:59+01:00"},
		"over":            {paused: "true", until: "2026-03-02T11:00:00Z"},
		"no time":         {paused: "true", until: "2h", on: true, fault: `until is "2h": want a time such as`},
		"two that are no": {paused: "on", until: "soon", on: true, fault: "counts as true"},
	} {
		p := translate.PauseOf(map[string]string{"paused": c.paused, "until": c.until, "reason": "release"}, now)
		if p.On != c.on || (p.Reason == "release") != c.on || (len(p.Faults) > 0) != (c.fault != "") ||
			!strings.Contains(strings.Join(p.Faults, "\n"), c.fault) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := translate.PauseOf(map[string]string{"paused": "true", "until": "2026-03-02T14:00:00+01:00"},
		now); p.Until.String() !=
		"2026-03-02 13:00:00 +0000 UTC" {
		t.Errorf("ends %s", p.Until)
	}
}
