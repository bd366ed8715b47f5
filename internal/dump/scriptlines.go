package dump

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

const (
	labelArch = "kubernetes.io/arch"
	labelOS   = "kubernetes.io/os"
)

// types writes the instance types of a catalogue.
func (p *scripter) types(b *strings.Builder, c catalogueRecord) {
	for i, t := range c.Types {
		labels := map[string]string{}
		for _, r := range t.Labels {
			if r.Key != string(catalog.LabelInstanceType) && r.Key != string(catalog.LabelZone) &&
				r.Key != string(catalog.LabelCapacityType) {
				labels[r.Key] = strings.Join(r.In, "|")
			}
		}
		arch, system := labels[labelArch], labels[labelOS]
		delete(labels, labelArch)
		delete(labels, labelOS)
		overhead := resources.Vector(t.Capacity).Minus(t.Allocatable)
		b.WriteString(words("type", t.Name, p.amounts("", t.Capacity), p.amounts("system.", overhead), offersOf(c, i),
			attribute("arch", arch), attribute("os", system), attribute("labels", labelText(labels))))
	}
}

// offersOf writes the offerings of a type: zones, a price for each capacity type, and what is sold out.
func offersOf(c catalogueRecord, at int) string {
	short := map[string]string{catalog.OnDemand: "od", catalog.Spot: "spot", catalog.Reserved: "reserved"}
	zones, prices := map[string]bool{}, map[string]string{}
	var soldOut []string
	reservation := 0
	for _, o := range c.Offers {
		if o.Type != at {
			continue
		}
		zones[o.Zone], prices[short[o.CapacityType]] = true, resources.Money(o.Price).String()
		if o.SoldOut {
			soldOut = append(soldOut, o.Zone+"/"+short[o.CapacityType])
		}
		reservation = max(reservation, o.Reservation)
	}
	slices.Sort(soldOut)
	parts := []string{attribute("zones", strings.Join(slices.Sorted(maps.Keys(zones)), ","))}
	for _, kind := range slices.Sorted(maps.Keys(prices)) {
		parts = append(parts, attribute(kind, prices[kind]))
	}
	return strings.TrimSuffix(words(append(parts, number("reservation", reservation, 0),
		attribute("unavailable", strings.Join(soldOut, ",")))...), "\n")
}

func (p *scripter) pool(r poolRecord) string {
	var needs []requirementRecord
	for _, need := range r.Requirements {
		if need.Key != cluster.LabelPool {
			needs = append(needs, need)
		}
	}
	var minimums, taints []string
	for _, m := range r.MinValues {
		minimums = append(minimums, fmt.Sprintf("%s:%d", m.Key, m.Count))
	}
	for _, t := range r.Taints {
		taints = append(taints, "taint="+cluster.Taint(t).String())
	}
	limits := make([]int64, len(r.Limits.Resources))
	for i, limited := range r.Limits.Limited {
		if limited {
			limits[i] = r.Limits.Resources[i]
		}
	}
	replicas := ""
	if r.Static {
		replicas = fmt.Sprintf("replicas=%d", r.Replicas)
	}
	overhead := ""
	if r.NodeOverheadPrice != 0 {
		overhead = "overhead=" + resources.Money(r.NodeOverheadPrice).String()
	}
	policy := map[int]string{int(cluster.WhenEmpty): "empty", int(cluster.Balanced): "balanced"}[r.Consolidates]
	return words("pool", r.Name, number("weight", r.Weight, 0), attribute("need", needText(needs)),
		strings.Join(taints, " "),
		number("nodes", r.Limits.SoftNodes, -1), number("hard.nodes", r.Limits.HardNodes, -1),
		p.amounts("limit.", limits),
		attribute("minvalues", strings.Join(minimums, ",")), replicas, number("min-nodes", r.MinNodes, 0),
		flag("relax", r.RelaxMinValues), flag("graceful-expiration", r.ExpiresGracefully), flag("terminate-first",
			r.TerminateFirst), flag("none-first", r.NoneFirst), attribute("blocked", r.Blocked), flag("invalid",
			r.Invalid),
		flag("dormant", r.Dormant), flag("gentle", r.Gentle), flag("held", r.Held), attribute("consolidate", policy),
		number("tolerance", r.PriceTolerance, 0), overhead, number("spot-ratio", 100-r.OnDemandPercent, 100))
}

// needText formats requirements as plans do.
func needText(records []requirementRecord) string {
	var parts []string
	for _, r := range records {
		switch {
		case !r.Open && r.Absent:
			parts = append(parts, "!"+r.Key)
		case !r.Open:
			parts = append(parts, r.Key+"="+strings.Join(r.In, "|"))
		case !r.Absent && r.Gte == nil && r.Lte == nil:
			parts = append(parts, r.Key)
		}
		if len(r.NotIn) > 0 {
			parts = append(parts, r.Key+"!="+strings.Join(r.NotIn, "|"))
		}
		if r.Gte != nil {
			parts = append(parts, r.Key+">="+strconv.FormatInt(*r.Gte, 10))
		}
		if r.Lte != nil {
			parts = append(parts, r.Key+"<="+strconv.FormatInt(*r.Lte, 10))
		}
	}
	return strings.Join(parts, ",")
}

func (p *scripter) node(n nodeRecord) string {
	kind, name := "node", n.Name
	if name == "" {
		kind, name = "claim", n.Claim
	}
	labels := maps.Clone(n.Labels)
	delete(labels, cluster.LabelPool)
	if n.Name != "" {
		delete(labels, cluster.LabelHostname)
	}
	var taints []string
	for _, t := range n.Taints {
		taints = append(taints, "taint="+cluster.Taint(t).String())
	}
	room, capacity, machine := "", "", n.InstanceType
	if !p.offered(machine) {
		room, machine = p.amounts("", n.Allocatable), ""
	} else {
		capacity = labels[string(catalog.LabelCapacityType)]
		delete(labels, string(catalog.LabelInstanceType))
	}
	return words(kind, name, attribute("type", machine), room, attribute("capacity", capacity),
		attribute("pool", n.Pool), attribute("labels", labelText(labels)), attribute("open", needText(n.Open)),
		strings.Join(taints, " "), flag("deleting", n.Deleting),
		flag("disrupting", n.Disrupting && !n.Rebooting), flag("rebooting", n.Rebooting),
		flag("new", kind == "node" && !n.Initialized), flag("unlaunched", kind == "claim" && !n.Launched &&
			len(n.Open) == 0),
		flag("not-ready", n.NotReady), flag("do-not-disrupt", n.DoNotDisrupt), flag("drain-ends", n.DrainEnds),
		flag("foreign", n.Foreign),
		flag("drifted", n.Drifted), flag("expired", n.Expired), number("quiet-at", n.ConsolidatableAt, 0),
		number("created", n.Created, 0), attribute("replaces", strings.Join(n.Replaces, ",")),
		flag("replaced", n.Replaced), attribute("held", n.Held))
}

// offered reports whether the script has the instance type.
func (p *scripter) offered(name string) bool {
	return len(p.in.catalogues) > 0 && slices.ContainsFunc(p.in.catalogues[0].Types, func(t typeRecord) bool {
		return t.Name == name
	})
}

func (p *scripter) pod(s shapeRecord, pod podRecord, coming string) string {
	if s.Buffer != "" {
		return words("buffer", pod.Name, attribute("ns", pod.Namespace), p.shape(s))
	}
	return words("pod", pod.Name, attribute("ns", pod.Namespace), p.shape(s), attribute("node", pod.Node),
		attribute("coming", coming),
		attribute("promised", pod.Promised), attribute("passed-over", pod.PassedOver),
		number("priority", pod.Priority, 0),
		number("deletion-cost", pod.DeletionCost, 0), attribute("daemon", pod.Daemon),
		flag("do-not-disrupt", pod.DoNotDisrupt), flag("ending", pod.Terminating), flag("returns", pod.Returns))
}

// shape writes what a pod asks for.
func (p *scripter) shape(s shapeRecord) string {
	requests := slices.Clone(s.Requests)
	if len(requests) > resources.Pods {
		requests[resources.Pods] = 0 // every pod requests one
	}
	parts := []string{p.amounts("", requests), attribute("labels", labelText(s.Labels))}
	own := s.Alternatives
	if s.Narrowed {
		own = s.Own
	}
	for _, a := range own {
		if len(a.Names.In) > 0 {
			parts = append(parts, "named="+strings.Join(a.Names.In, "|"))
			continue
		}
		parts = append(parts, "need="+needText(a.Labels))
	}
	parts = append(parts, attribute("blocked", s.Blocked))
	for _, t := range s.Tolerations {
		parts = append(parts, "tolerate="+tolerationText(t))
	}
	for _, port := range s.HostPorts {
		parts = append(parts, fmt.Sprintf("port=%d", port.Port))
	}
	for _, spread := range s.Spread {
		parts = append(parts, "spread="+spreadText(spread))
	}
	for _, spread := range s.SoftSpread {
		parts = append(parts, "wish-spread="+spreadText(spread))
	}
	for _, t := range s.AntiAffinity {
		parts = append(parts, "apart="+termText(t))
	}
	for _, t := range s.Affinity {
		parts = append(parts, "together="+termText(t))
	}
	for _, w := range s.Wishes {
		switch {
		case w.Term.Key == "":
			parts = append(parts, fmt.Sprintf("wish=%d:%s", w.Weight, needText(w.Labels)))
		case w.Apart:
			parts = append(parts, fmt.Sprintf("wish-apart=%d:%s", w.Weight, termText(w.Term)))
		default:
			parts = append(parts, fmt.Sprintf("wish-together=%d:%s", w.Weight, termText(w.Term)))
		}
	}
	return strings.TrimSuffix(words(parts...), "\n")
}

func tolerationText(t tolerationRecord) string {
	text := t.Key
	if t.Key == "" && t.Effect == "" {
		return "*"
	}
	if t.Operator == cluster.TolerationEqual {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + t.Effect
	}
	return text
}

func spreadText(s spreadRecord) string {
	text := fmt.Sprintf("%s:%d:%d/%s", s.Key, s.MaxSkew, s.MinDomains, needText(s.Pods.Labels))
	if s.IgnoreAffinity {
		text += "/ignore-affinity"
	}
	if s.HonorTaints {
		text += "/honor-taints"
	}
	return text
}

func termText(t termRecord) string {
	text := t.Key + "/" + needText(t.Pods.Labels)
	if t.NamespaceSelector.Enabled {
		return text + "/nslabels=" + needText(t.NamespaceSelector.Labels)
	}
	return text + "/ns=" + strings.Join(t.Namespaces, "|")
}
