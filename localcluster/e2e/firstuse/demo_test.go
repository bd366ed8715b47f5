package firstuse

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// chapterEnv names the chapter that the long tests tell; empty: the whole demo.
const chapterEnv = "JOINER_DEMO_CHAPTER"

// demo returns the line that make demo runs.
func (term *terminal) demo(chapter, joinerctl string) string {
	line :=
		"bin/demo --controlplane bin/controlplane --joiner bin/joiner --operator bin/joiner-operator --joinerctl " +
			joinerctl
	if chapter != "" {
		line += " --chapter " + chapter
	}
	return line
}

// U-01: the demo fails if something is broken from outside. It names the chapter, the step and the error, and removes
// what it has started.
func TestU01_ADemoThatIsBrokenFromOutsideSaysSo(t *testing.T) {
	t.Parallel()
	term := open(t)
	broken := term.script("joinerctl", "echo broken from outside\nexit 7\n")
	run := term.start(term.demo("nodes", broken))
	code := run.ended()
	said := run.errors.String()
	if code != 1 || strings.Contains(run.all.String(), "Everything held") {
		t.Errorf("it ended with %d, want 1:\n%s", code, run.all.String())
	}
	for _, part := range []string{"FAILED: chapter nodes, step 3 of 6",
		"joinerctl explain pod default/impossible ended with 7", "broken from outside"} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q, but\n%s", part, said)
		}
	}
	term.leavesNothing()
}

// U-01: two demos at once do not disturb each other.
func TestU01_TwoDemosAtOnce(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	for range 2 {
		term := open(t)
		run := term.start(term.demo(os.Getenv(chapterEnv), "bin/joinerctl"))
		both.Go(func() {
			code := run.ended()
			if said := run.all.String(); code != 0 || !strings.Contains(said, "\nEverything held.") {
				t.Errorf("it ended with %d: %s\n%s", code, run.errors.String(), said)
			}
			term.leavesNothing()
		})
	}
	both.Wait()
}

// U-01: a demo that is interrupted at any line leaves neither a process nor a directory.
func TestU01_AnInterruptedDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	const lines = 60 // the chapter prints more
	for _, seed := range seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			term := open(t)
			run := term.start(term.demo("nodes", "bin/joinerctl"))
			left := 1 + rand.New(rand.NewPCG(seed, 0)).IntN(lines)
			t.Logf("interrupted at line %d", left)
			run.until(t, func(string) bool { left--; return left == 0 })
			run.interrupt()
			const interrupted = 130
			if code := run.ended(); code != interrupted {
				t.Errorf("it ended with %d, want %d", code, interrupted)
			}
			const said = "Interrupted; everything that was started has been stopped."
			if got := strings.TrimSpace(run.errors.String()); got != said {
				t.Errorf("it says %q, want %q", got, said)
			}
			term.leavesNothing()
		})
	}
}

// seeds returns those of JOINER_DEMO_SEEDS, or a few.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	words := strings.Fields(os.Getenv("JOINER_DEMO_SEEDS"))
	if len(words) == 0 {
		return []uint64{1, 2, 3}
	}
	var all []uint64
	for _, word := range words {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatalf("JOINER_DEMO_SEEDS has %q: it must be a list of whole numbers", word)
		}
		all = append(all, seed)
	}
	return all
}
