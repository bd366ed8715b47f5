package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// script writes a case in the language of the engine's scripts. What the language cannot express becomes a comment.
type script struct {
	names resources.Names
	lines []string
	lost  []string
}

// Script writes the case, as the engine saw it in the snapshot, in the language of the engine's scripts.
func (c *Case) Script(s *cluster.Snapshot) string {
	w := &script{names: s.Names}
	for _, t := range c.Types {
		w.instanceType(t)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces)) {
		if labels := maps.Clone(s.Namespaces[name]); name != "default" {
			delete(labels, "kubernetes.io/metadata.name")
			w.add("namespace", name, attribute("labels", pairs(labels)))
		}
	}
	for _, p := range s.Pools {
		w.pool(p)
	}
	for _, d := range s.Daemons {
		namespace, name, _ := strings.Cut(d.Name, "/")
		w.add("daemon", name, attribute("ns", unless(namespace, "default")), w.shape(d.Shape))
	}
	for _, n := range s.Nodes {
		w.node(n)
	}
	for _, n := range s.Nodes {
		for _, pod := range n.Pods {
			w.pod(pod)
		}
	}
	for _, pod := range s.Pending {
		if pod.Node == "" {
			w.pod(pod)
		}
	}
	for _, what := range w.lost {
		w.lines = append(w.lines, "# cannot be said: "+what)
	}
	return enginetest.Shorten(strings.Join(w.lines, "\n")) + "\n"
}

func (w *script) add(words ...string) {
	w.lines = append(w.lines, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
}

func (w *script) lose(format string, args ...any) {
	if what := fmt.Sprintf(format, args...); !slices.Contains(w.lost, what) {
		w.lost = append(w.lost, what)
	}
}

func attribute(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + value
}

func unless(value, usual string) string {
	if value == usual {
		return ""
	}
	return value
}

func pairs(labels map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, name+"="+labels[name])
	}
	return strings.Join(list, ",")
}

// amount formats an amount of a resource as in scripts.
func amount(name string, n int64) string {
	short := map[string]string{resources.NameCPU: "cpu", resources.NameMemory: "mem",
		resources.NameEphemeralStorage: "disk"}[name]
	if short == "" {
		short = name
	}
	switch {
	case name == resources.NameCPU && n%1000 != 0:
		return fmt.Sprintf("%s=%dm", short, n)
	case name == resources.NameCPU:
		return fmt.Sprintf("%s=%d", short, n/1000)
	case n > 0 && n%(1<<30) == 0:
		return fmt.Sprintf("%s=%dGi", short, n>>30)
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%s=%dMi", short, n>>20)
	}
	return fmt.Sprintf("%s=%d", short, n)
}

func (w *script) instanceType(t catalog.Type) {
	var words, zones, unavailable []string
	prices := map[string]string{}
	for _, o := range t.Offerings {
		zones = append(zones, o.Zone)
		prices[o.CapacityType] = o.Price.String()
	}
	slices.Sort(zones)
	zones = slices.Compact(zones)
	short := map[string]string{catalog.OnDemand: "od", catalog.Spot: "spot", catalog.Reserved: "reserved"}
	for _, kind := range slices.Sorted(maps.Keys(prices)) {
		words = append(words, attribute(short[kind], prices[kind]))
		for _, zone := range zones {
			if !slices.ContainsFunc(t.Offerings, func(o catalog.Offering) bool {
				return o.Zone == zone && o.CapacityType == kind && o.Available
			}) {
				unavailable = append(unavailable, zone+"/"+short[kind])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Capacity)) {
		if n := t.Capacity[name] - t.Overhead[name]; name != resources.NamePods || n != 110 {
			words = append(words, amount(name, n))
		}
	}
	labels := map[string]string{}
	for r := range t.Labels.All() {
		if value, single := r.Single(); single {
			labels[string(r.Key())] = value
		}
	}
	arch := labels["kubernetes.io/arch"]
	delete(labels, "kubernetes.io/arch")
	delete(labels, "kubernetes.io/os")
	w.add("type", t.Name, strings.Join(words, " "), "zones="+strings.Join(zones, ","),
		attribute("arch", unless(arch, "amd64")),
		attribute("labels", pairs(labels)), attribute("unavailable", strings.Join(unavailable, ",")))
}

func (w *script) pool(p *cluster.Pool) {
	own := p.Requirements.Without(cluster.LabelPool).Without(requirement.Key("karpenter.kwok.sh/kwoknodeclass"))
	words := []string{attribute("need", demands(own)), taints(p.Taints)}
	if p.Weight != 0 {
		words = append(words, fmt.Sprint("weight=", p.Weight))
	}
	if p.Limits.SoftNodes != limit.None {
		words = append(words, fmt.Sprint("nodes=", p.Limits.SoftNodes))
	}
	if p.Limits.HardNodes != limit.None {
		words = append(words, fmt.Sprint("hard.nodes=", p.Limits.HardNodes))
	}
	for i, limited := range p.Limits.Limited {
		if limited {
			words = append(words, "limit."+amount(w.names[i], p.Limits.Resources[i]))
		}
	}
	w.add("pool", p.Name, strings.Join(words, " "))
}

func taints(list []cluster.Taint) string {
	var words []string
	for _, t := range list {
		words = append(words, "taint="+t.String())
	}
	return strings.Join(words, " ")
}

// demands formats a set as the value of need=.
func demands(set requirement.Set) string {
	signs := map[requirement.Operator]string{
		requirement.In: "=", requirement.NotIn: "!=", requirement.Gt: ">", requirement.Lt: "<", requirement.Gte: ">=",
		requirement.Lte: "<=",
	}
	var list []string
	for r := range set.All() {
		for _, term := range r.Terms() {
			switch term.Operator {
			case requirement.Exists:
				list = append(list, string(r.Key()))
			case requirement.DoesNotExist:
				list = append(list, "!"+string(r.Key()))
			default:
				list = append(list, string(r.Key())+signs[term.Operator]+strings.Join(term.Values, "|"))
			}
		}
	}
	return strings.Join(list, ",")
}

func (w *script) node(n *cluster.Node) {
	kind, words := "node", []string{attribute("pool", n.Pool), taints(n.Taints)}
	if n.Name == "" {
		kind = "claim"
		words = append(words,
			attribute("open", demands(n.Open.Without(requirement.Key("karpenter.kwok.sh/kwoknodeclass")))))
	}
	if n.Deleting {
		words = append(words, "deleting")
	}
	if !n.Initialized && n.Open.Len() == 0 {
		words = append(words, "new")
	}
	labels := maps.Clone(n.Labels)
	for _, label := range []string{
		cluster.LabelHostname, cluster.LabelPool, "karpenter.kwok.sh/kwoknodeclass", "kubernetes.io/os",
		"karpenter.sh/initialized", "karpenter.sh/registered",
	} {
		delete(labels, label)
	}
	words = append(words, attribute("labels", pairs(labels)))
	for i, n := range n.Allocatable {
		if w.names[i] != resources.NamePods && n != 0 {
			words = append(words, amount(w.names[i], n))
		} else if w.names[i] == resources.NamePods && n != 110 {
			w.lose("room for %d pods on a node", n)
		}
	}
	w.add(kind, n.ID(), strings.Join(words, " "))
}

func (w *script) pod(p *cluster.Pod) {
	words := []string{attribute("ns", unless(p.Namespace, "default")), attribute("node", p.Node), w.shape(p.Shape)}
	if p.Priority != 0 {
		words = append(words, fmt.Sprint("priority=", p.Priority))
	}
	if p.Terminating {
		w.lose("%s is terminating", p.Ref())
	}
	w.add("pod", p.Name, strings.Join(words, " "))
}
