// Package script is the language in which the engine's behaviour is written down: a cluster in a few lines, a verb,
// and the plan that comes out. The scripts in internal/engine/testdata use it; docs/scripts.md is its reference.
//
// A line is a word for the kind of thing, its name, and attributes name=value:
//
//	type m5.large  cpu=2 mem=8Gi zones=a,b od=0.096 spot=0.035
//	pool default   weight=10 need=zone=a|b nodes=3
//	node n1        type=m5.large zone=a pool=default
//	pod web-0..6   cpu=500m mem=1Gi labels=app=web spread=zone:1
//
// Requirements are written as plans print them: zone=a|b, zone!=a, gpu, !gpu, cpu>=4; a comma joins them, and a second
// need= is another way to be satisfied (OR).
package script
