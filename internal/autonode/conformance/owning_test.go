package conformance_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
)

// what another operator writes is judged by the policy alone, and is that operator's business, not a tenant's.
func TestA30_WhatAnotherOperatorWritesIsJudged(t *testing.T) {
	t.Parallel()
	others := func(kind string, wrapped ...string) func(world) {
		return func(w world) {
			w.forgets(kind, "p")
			w.forgets(kind, "c")
			w.Memory.Others, w.Memory.Wrapped = map[string]bool{kind: true}, map[string]bool{}
			for _, name := range wrapped {
				w.Memory.Wrapped[name] = true
			}
		}
	}
	for name, c := range map[string]struct {
		kind    string
		wrapped []string
		do      func(world)
		want    []conformance.Finding // of which kind, name and cause count
	}{
		"a class as provided": {conformance.EC2NodeClass, []string{"c"}, func(world) {}, nil},
		"another root volume": {conformance.EC2NodeClass, []string{"c"},
			func(w world) { w.class.Spec.BlockDeviceMappings[0].EBS.IOPS = nil },
			[]conformance.Finding{{Kind: "EC2NodeClass", Name: "c", Cause: conformance.NotOwned}}},
		"another profile": {conformance.EC2NodeClass, []string{"c"},
			func(w world) { w.class.Spec.InstanceProfile = new("admin") },
			[]conformance.Finding{{Kind: "EC2NodeClass", Name: "c", Cause: conformance.NotOwned}}},
		"a class without a wrapper": {conformance.EC2NodeClass, nil, func(world) {}, []conformance.Finding{
			{Kind: "EC2NodeClass", Name: "c", Cause: conformance.Foreign}, {Kind: "NodeClaim", Name: "k",
				Cause: conformance.NodeClassUnmanaged},
			{Kind: "NodePool", Name: "p", Cause: conformance.NodeClassUnmanaged},
		}},
		"a class that is gone": {conformance.EC2NodeClass, []string{"c"}, func(w world) { w.Objects.Classes = nil },
			[]conformance.Finding{
				{Kind: "NodeClaim", Name: "k", Cause: conformance.NodeClassUnmanaged}, {Kind: "NodePool", Name: "p",
					Cause: conformance.NodeClassUnmanaged},
			}},
		"a pool within the policy": {conformance.NodePool, nil, func(world) {}, nil},
		"a pool outside of it": {conformance.NodePool, nil, func(w world) {
			w.pool.Spec.Template.Spec.Requirements = w.pool.Spec.Template.Spec.Requirements[3:]
			w.pool.Spec.Template.Spec.NodeClassRef, w.claim.Spec.NodeClassRef, w.Objects.Classes = nil, nil, nil
		}, []conformance.Finding{{Kind: "NodePool", Name: "p", Cause: conformance.NotOwned}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			others(c.kind, c.wrapped...)(w)
			c.do(w)
			type key struct {
				kind, name string
				cause      conformance.Cause
			}
			want := map[key]bool{}
			for _, f := range c.want {
				want[key{f.Kind, f.Name, f.Cause}] = false
			}
			for _, f := range conformance.Look(*w.Input).Findings {
				if _, wanted := want[key{f.Kind, f.Name, f.Cause}]; !wanted {
					t.Errorf("found %+v", f)
				}
				want[key{f.Kind, f.Name, f.Cause}] = true
			}
			for missed, found := range want {
				if !found {
					t.Errorf("%+v was not found", missed)
				}
			}
		})
	}
	if party := conformance.NotOwned.Party(); party != conformance.Service {
		t.Errorf("NotOwned is the business of %q", party)
	}
}
