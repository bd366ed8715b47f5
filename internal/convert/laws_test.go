package convert

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

func converter(t testing.TB) *Converter {
	t.Helper()
	c, err := New(Config{Expiry: func(pool string) (string, bool) { return "24h", pool == "default" }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eachKind tries a law with generated objects of each kind and version, in the number that rounds gives.
func eachKind(t *testing.T, law func(r *rapid.T, c *Converter, g, other generator)) {
	t.Helper()
	c := converter(t)
	all := generators(t)
	for i, g := range all {
		t.Run(g.name(), func(t *testing.T) {
			t.Parallel()
			other := all[i^1] // sorted: the other version of the kind
			repeat(t, func(r *rapid.T) { law(r, c, g, other) })
		})
	}
}

// repeat tries a law in the number that rounds gives; rapid alone tries it a hundred times.
func repeat(t *testing.T, law func(r *rapid.T)) {
	t.Helper()
	for tried, all := 0, rounds(t); tried < all; {
		rapid.Check(t, func(r *rapid.T) { tried++; law(r) })
	}
}

func mustConvert(r *rapid.T, c *Converter, o object, version string) object {
	before := encode(o)
	result, err := c.Convert(o, version)
	if err != nil {
		r.Fatal(err)
	}
	if len(result.Problems) > 0 {
		r.Fatalf("%s\ncannot be converted: %s", encode(o), Describe(result.Problems))
	}
	if encode(o) != before {
		r.Fatalf("the object was changed:\n%s\n%s", before, encode(o))
	}
	return result.Object
}

func same(r *rapid.T, what string, got, want object, between ...object) {
	if !equal(got, want) {
		for _, o := range between {
			r.Logf("between: %s", encode(o))
		}
		r.Fatalf("%s\n got %s\nwant %s", what, encode(got), encode(want))
	}
}

// V-21: v1 → v1beta1 → v1 and v1beta1 → v1 → v1beta1 give back an equal object, unknown fields included.
func TestARoundTripGivesBackAnEqualObject(t *testing.T) {
	t.Parallel()
	eachKind(t, func(r *rapid.T, c *Converter, g, other generator) {
		o := g.object(r)
		if sometimes(r) {
			unknown(r, o)
		}
		there := mustConvert(r, c, o, other.version)
		same(r, "the way back", mustConvert(r, c, there, g.version), o, there)
	})
}

// V-21: the same with an API server in between, which sets defaults and removes unknown fields on every read.
func TestARoundTripThroughAnAPIServerGivesBackAnEqualObject(t *testing.T) {
	t.Parallel()
	eachKind(t, func(r *rapid.T, c *Converter, g, other generator) {
		k := c.kinds[g.kind]
		o := g.serve(k, g.object(r))
		there := other.serve(k, mustConvert(r, c, o, other.version))
		back := g.serve(k, mustConvert(r, c, there, g.version))
		same(r, "the way back", back, o, there)
		same(r, "once more", mustConvert(r, c, mustConvert(r, c, back, other.version), g.version), o)
	})
}

// V-21: what is written in one version is read back in it, whatever older notes the object has: the field wins.
func TestAnEditIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	eachKind(t, func(r *rapid.T, c *Converter, g, other generator) {
		old, edited := g.object(r), g.object(r)
		written := mustConvert(r, c, mustConvert(r, c, old, other.version), g.version)
		carried := mustConvert(r, c, other.object(r), g.version)
		written["spec"] = clone(edited["spec"])
		carried["spec"] = clone(edited["spec"])
		for _, o := range []object{written, carried} {
			there := mustConvert(r, c, o, other.version)
			back := mustConvert(r, c, there, g.version)
			same(r, "the spec", at(back, "spec"), at(o, "spec"), o, there)
		}
	})
}

// Server-side apply asks for objects without some of their fields. They are converted like any other, none is held,
// and the way back gives them again.
func TestAPartOfAnObjectIsConverted(t *testing.T) {
	t.Parallel()
	eachKind(t, func(r *rapid.T, c *Converter, g, other generator) {
		o := g.object(r)
		for _, spec := range []object{at(o, "spec"), at(o, "spec", "template", "spec")} {
			// half a reference to a class that nobody knows is a problem
			if ref := at(spec, "nodeClassRef"); ref != nil {
				ref["kind"] = "EC2NodeClass"
				ref["group"], ref["apiVersion"] = "karpenter.k8s.aws", "karpenter.k8s.aws/v1beta1"
			}
		}
		for range rapid.IntRange(1, 4).Draw(r, "fields") {
			part, parents := o, [][]string{{"spec"}, {"spec", "disruption"}, {"spec", "template"},
				{"spec", "template", "spec"}, {"spec", "template", "spec", "nodeClassRef"}, {"spec", "nodeClassRef"},
				{}}
			if found := at(o, parents[rapid.IntRange(0, len(parents)-1).Draw(r, "parent")]...); found != nil {
				part = found
			}
			names := slices.DeleteFunc(keys(part, nil), func(key string) bool {
				return key == "apiVersion" || key == "kind" || key == "metadata"
			})
			if len(names) > 0 {
				delete(part, names[rapid.IntRange(0, len(names)-1).Draw(r, "field")])
			}
		}
		there := mustConvert(r, c, o, other.version)
		same(r, "the way back", mustConvert(r, c, there, g.version), o, there)
	})
}

// V-23: conversion changes no drift hash, nor does an edit in v1beta1 outside the template.
func TestConversionDriftsNothing(t *testing.T) {
	t.Parallel()
	c, all := converter(t), generators(t)
	g := all[slices.IndexFunc(all, func(g generator) bool { return g.kind == "NodePool" && g.version == V1 })]
	repeat(t, func(r *rapid.T) {
		o := g.object(r)
		b := mustConvert(r, c, o, V1beta1)
		spec := at(b, "spec")
		spec["limits"], spec["weight"] = object{"cpu": "9"}, json.Number("7")
		at(spec, "disruption")["budgets"] = []any{object{"nodes": "3"}}
		if got, want := hash(r, mustConvert(r, c, b, V1)), hash(r, o); got != want {
			r.Fatalf("hash %s, was %s", got, want)
		}
	})
}

func hash(r *rapid.T, o object) string {
	var pool karpenterv1.NodePool
	if err := json.Unmarshal([]byte(encode(o)), &pool); err != nil {
		r.Fatal(err)
	}
	return translate.Hash(&pool)
}
