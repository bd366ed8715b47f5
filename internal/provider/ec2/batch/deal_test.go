package batch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
)

// E-29: machines are dealt out in a fixed order; claims without one get the error; surplus machines are returned.
func TestMachinesAreDealtOut(t *testing.T) {
	t.Parallel()
	none := errors.New("InsufficientInstanceCapacity")
	for _, c := range []struct {
		asked   int
		had     []string
		refused error
		want    string
		left    string
	}{
		{asked: 2, had: []string{"i-b", "i-a"}, want: "i-a i-b"},
		{asked: 3, had: []string{"i-b", "i-a"}, refused: none, want: "i-a i-b InsufficientInstanceCapacity"},
		{asked: 1, had: []string{"i-a"}, refused: none, want: "i-a"},
		{asked: 1, want: batch.ErrUnanswered.Error()},
		{asked: 1, had: []string{"i-c", "i-b", "i-a"}, want: "i-a", left: "i-b i-c"},
	} {
		answers, left := batch.Deal(c.asked, c.had, cmp.Compare[string], c.refused)
		var got []string
		for _, a := range answers {
			if a.Err != nil {
				got = append(got, a.Err.Error())
			} else {
				got = append(got, a.Value)
			}
		}
		if strings.Join(got, " ") != c.want || strings.Join(left, " ") != c.left {
			t.Errorf("%v for %d: %v and %v left, want %s and %s", c.had, c.asked, got, left, c.want, c.left)
		}
	}
}

// E-54: an id is named as a word, not as a part of another.
func TestWhichIDsAnErrorNames(t *testing.T) {
	t.Parallel()
	ids := []string{"i-0a", "i-0ab", "i-0c"}
	for text, want := range map[string][]string{
		"The instance IDs 'i-0ab, i-0c' do not exist": {"i-0ab", "i-0c"},
		"The instance 'i-0a' may not be terminated.":  {"i-0a"},
		"xi-0a i-0abc":      nil,
		"Something is bad.": nil,
	} {
		if got := batch.Named(text, ids); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// E-39, E-54, as a law: whichever ids EC2 refuses, and whether or not it says which, these fail and no others; a
// fault of the call fails all, after one call.
func TestARefusedIDFailsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ids []string
		bad := map[string]bool{}
		for i := range rapid.IntRange(0, 40).Draw(t, "ids") {
			id := fmt.Sprintf("i-%x", i)
			ids = append(ids, id)
			if rapid.IntRange(0, 5).Draw(t, "bad") == 0 {
				bad[id] = true
			}
		}
		names := rapid.IntRange(0, 3).Draw(t, "names") // how many refused ids an error names
		ended := map[string]bool{}
		calls := 0
		call := func(_ context.Context, ids []string) error {
			calls++
			var refused []string
			for _, id := range ids {
				if bad[id] {
					refused = append(refused, id)
				}
			}
			if len(refused) > 0 {
				return fmt.Errorf("refused: %s", strings.Join(refused[:min(names, len(refused))], ", "))
			}
			for _, id := range ids {
				ended[id] = true
			}
			return nil
		}
		failed := batch.Apart(t.Context(), ids, call, func(error) batch.Fault { return batch.OfAnID })
		if !maps.EqualFunc(failed, bad, func(err error, _ bool) bool { return err != nil }) {
			t.Fatalf("failed %v, want %v", failed, bad)
		}
		if len(ended)+len(bad) != len(ids) || calls > 2*len(ids) {
			t.Fatalf("%d of %d ended, %d bad, %d calls", len(ended), len(ids), len(bad), calls)
		}
		calls = 0
		all := batch.Apart(t.Context(), ids, call, func(error) batch.Fault { return batch.OfTheCall })
		if len(bad) > 0 && len(all) != len(ids) || calls > 1 {
			t.Fatalf("a fault of the call: %d of %d failed, %d calls", len(all), len(ids), calls)
		}
	})
}
