package fold_test

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// list reads entries from text: a line for each, of key, operator and values, separated by spaces.
func list(text string) []fold.Requirement {
	var entries []fold.Requirement
	for line := range strings.Lines(text) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		entry := fold.Requirement{Key: words[0]}
		if len(words) > 1 {
			entry.Operator = fold.Operator(words[1])
			entry.Values = words[2:]
		}
		if len(words) > 3 {
			entry.MinValues = new(len(words))
		}
		entries = append(entries, entry)
	}
	return entries
}

// FuzzOf: for any entries, nothing panics. The result lies within each valid entry, and reads back the same from its
// terms.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		"", "a In x y", "a In x\na In y", "a Gt 3\na Lt 9\na NotIn 5", "a Lt 0", "a Gt 9223372036854775807",
		"a Lt -9223372036854775808",
		"a Gte -1\na Lte 300\na NotIn 0 300 299", "a Exists\na DoesNotExist", " In", "a Near", "a In", "a Exists x",
		"a Gt", "a NotIn", "beta.kubernetes.io/arch In amd64\nkubernetes.io/arch NotIn arm64",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries := list(text)
		set, _, err := fold.Of(entries)
		for _, entry := range entries {
			key := fold.Canonical(entry.Key)
			allowed, bad := fold.New(key, entry.Operator, entry.Values...)
			left := set.Get(key)
			if bad != nil && (err == nil || !left.Empty()) {
				t.Fatalf("%+v cannot be understood, and leaves %s, error %v", entry, left, err)
			}
			if bad == nil && !left.And(allowed).Equal(left) {
				t.Fatalf("%s is wider than %s", left, allowed)
			}
			back := fold.Any(key)
			for _, term := range left.Terms() {
				read, err := fold.New(key, term.Operator, term.Values...)
				if key != "" && err != nil {
					t.Fatal(err)
				}
				back = back.And(read)
			}
			if key != "" && !back.Equal(left) {
				t.Fatalf("%s reads back as %s", left, back)
			}
			if value, some := left.Example(); some != left.AllowsPresent() || some && !left.Has(value) {
				t.Fatalf("%s: example %q, %t", left, value, some)
			}
		}
	})
}
