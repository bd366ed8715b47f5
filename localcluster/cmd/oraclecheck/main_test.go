package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// ask puts a question about n pods of one core each on the only node, which has two.
func ask(t *testing.T, n int) (answer, error) {
	t.Helper()
	var pods, placed []string
	for i := range n {
		pods = append(pods,
			fmt.Sprintf(
				`{"metadata":{"namespace":"default","name":"p%d","uid":"p%d"},"spec":{"containers":[{"name":"c",`+
					`"resources":{"requests":{"cpu":"1"}}}]}}`,
				i, i))
		placed = append(placed, fmt.Sprintf(`"default/p%d":"n1"`, i))
	}
	question := fmt.Sprintf(
		`{"launched":[{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"2","pods":"10"}}}],"pods":[%s],"placed":{%s}}`,
		strings.Join(pods, ","), strings.Join(placed, ","))
	var out bytes.Buffer
	if err := check(t.Context(), strings.NewReader(question), &out); err != nil {
		return answer{}, err
	}
	var a answer
	return a, json.Unmarshal(out.Bytes(), &a)
}

// P-21: what fits passes, one pod too many is named with the plugin that refuses it, and a pod nobody knows is an
// error.
func TestCheck(t *testing.T) {
	t.Parallel()
	if a, err := ask(t, 2); err != nil || a.Checked != 2 || len(a.Violations) > 0 {
		t.Errorf("two pods: %+v, %v; want 2 checked and no violation", a, err)
	}
	a, err := ask(t, 3)
	if err != nil || len(a.Violations) != 1 || !strings.Contains(a.Violations[0], "NodeResourcesFit") {
		t.Errorf("three pods: %+v, %v; want one violation of NodeResourcesFit", a, err)
	}
	err = check(t.Context(), strings.NewReader(`{"placed":{"p1":"n1"}}`), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "namespace/name") {
		t.Errorf("a pod without namespace: %v", err)
	}
}
