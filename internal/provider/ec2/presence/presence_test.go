package presence

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var launch = time.Unix(1_700_000_000, 0)

func at(seconds int) time.Time { return launch.Add(time.Duration(seconds) * time.Second) }

// E-39: the conclusion from answers that do not know an instance.
func TestWhenAnInstanceIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		launched time.Time
		asked    []int // seconds after the launch; -1: it is seen
		want     bool
	}{
		"asked once":                 {launched: launch, asked: []int{500}},
		"asked twice":                {launched: launch, asked: []int{500, 510}, want: true},
		"asked twice in a row":       {launched: launch, asked: []int{500, 509}},
		"and again":                  {launched: launch, asked: []int{500, 509, 511}, want: true},
		"a young one":                {launched: launch, asked: []int{1, 60, 179}},
		"once young":                 {launched: launch, asked: []int{60, 180}},
		"no longer young":            {launched: launch, asked: []int{60, 180, 190}, want: true},
		"seen in between":            {launched: launch, asked: []int{500, -1, 510}},
		"seen before":                {launched: launch, asked: []int{500, -1, 510, 520}, want: true},
		"answers in any order":       {launched: launch, asked: []int{510, 500}, want: true},
		"it stays gone":              {launched: launch, asked: []int{500, 510, 511}, want: true},
		"launched nobody knows when": {asked: []int{500, 510, 679}},
		"three minutes after that":   {asked: []int{500, 510, 680, 690}, want: true},
	} {
		var b Book
		gone := false
		for _, second := range c.asked {
			if second < 0 {
				b.Seen("i-1")
				gone = false
			} else {
				gone = b.Unknown("i-1", c.launched, at(second))
			}
		}
		if gone != c.want {
			t.Errorf("%s: gone is %t", name, gone)
		}
		if b.Unknown("i-2", launch, at(500)) {
			t.Errorf("%s: another instance is gone too", name)
		}
	}
}

// E-39, as a law: an instance that EC2 shows at most two minutes late, and then always, never counts as gone, however
// often and in whatever order it is asked about, even if the clock is set forward by up to a minute. One that is never
// shown counts as gone in the end.
func TestNoLivingInstanceIsGone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shown := rapid.IntRange(0, 120).Draw(t, "shown after")
		known := rapid.Bool().Draw(t, "launch time known")
		launched := time.Time{}
		if known {
			launched = launch
		}
		var living, dead Book
		second, ahead := 0, 0
		jump := rapid.IntRange(0, 60).Draw(t, "the clock is set on by")
		for range rapid.IntRange(1, 40).Draw(t, "questions") {
			second += rapid.IntRange(0, 20).Draw(t, "seconds")
			if ahead == 0 && rapid.Bool().Draw(t, "is set on now") {
				ahead, second = jump, second+jump
			}
			if second-ahead >= shown {
				living.Seen("i-1")
			} else if living.Unknown("i-1", launched, at(second)) {
				t.Fatalf("gone after %d s, shown after %d s", second, shown)
			}
			dead.Unknown("i-1", launched, at(second))
		}
		dead.Unknown("i-1", launched, at(second+180))
		if !dead.Unknown("i-1", launched, at(second+190)) {
			t.Fatal("what EC2 never shows is not gone")
		}
	})
}

// The memory is bounded.
func TestTheBookIsBounded(t *testing.T) {
	t.Parallel()
	var b Book
	for i := range mostKnown {
		b.Unknown(fmt.Sprint("i-", i), launch, at(0))
	}
	b.Unknown("new", launch, at(3601))
	if len(b.unknown) != 1 {
		t.Errorf("%d instances are remembered, want the new one", len(b.unknown))
	}
}
