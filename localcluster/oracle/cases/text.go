package cases

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// Report prints a failing case: the oracle's answer, the objects as YAML, and the case as a script. For the script it
// adds the engine's plan and the verdict of the naive checker from the engine's tests.
func (j *Judge) Report(ctx context.Context, c *Case) string {
	out, err := j.Run(ctx, c)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, v := range out.Violations {
		fmt.Fprintln(&b, v)
	}
	fmt.Fprintf(&b, "The plan:\n%s\nThe objects:\n%s\n", enginetest.Shorten(out.Plan.String()), c.YAML())
	script := c.Script(out.Snapshot)
	fmt.Fprintf(&b, "As a script:\nprovision\n%s----\n", script)
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		fmt.Fprintf(&b, "which does not parse: %v\n", err)
		return b.String()
	}
	again := engine.Provision(snapshot)
	b.WriteString(enginetest.Shorten(again.String()))
	for choice := range 3 {
		for _, broken := range enginetest.Check(snapshot, again, choice) {
			fmt.Fprintf(&b, "# the naive checker, choice %d: %s\n", choice, enginetest.Shorten(broken))
		}
	}
	return b.String()
}

// YAML returns the objects of the case as users write them. Instance types are in the script only.
func (c *Case) YAML() string {
	var objects []any
	for _, pool := range c.Pools {
		objects = append(objects, pool)
	}
	for _, m := range c.Machines {
		if m.Claim != nil {
			objects = append(objects, m.Claim)
		}
		if m.Node != nil {
			objects = append(objects, m.Node)
		}
	}
	for _, set := range c.Daemons {
		objects = append(objects, set)
	}
	for _, pod := range c.Pods {
		objects = append(objects, pod)
	}
	var b strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.String()
}
