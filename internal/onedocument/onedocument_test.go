package onedocument_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/onedocument"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, fine := range map[string]bool{
		"": true, "a: 1\n": true, "---\na: 1\n": true, "# why\n---\na: 1\n---\n# the end\n": true, `{"a": 1}`: true,
		"a: |\n  ---\n  b\n": true, "a: 1\n---\nb: 1\n": false, "---\na: 1\n---\na: 1\n---\n": false,
	} {
		if err := onedocument.Check([]byte(text)); (err == nil) != fine {
			t.Errorf("%q: %v", text, err)
		}
	}
}
