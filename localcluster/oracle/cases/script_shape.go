package cases

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// shape writes what a pod asks for.
func (w *script) shape(s *cluster.Shape) string {
	var words []string
	for i, n := range s.Requests {
		if w.names[i] != resources.NamePods && n != 0 {
			words = append(words, amount(w.names[i], n))
		}
	}
	words = append(words, attribute("labels", pairs(s.Labels)))
	for _, a := range s.Alternatives {
		words = append(words, w.alternative(a))
	}
	for _, t := range s.Tolerations {
		// every daemon has these, and nodes in scripts do not have the taints
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			continue
		}
		words = append(words, w.toleration(t))
	}
	for _, port := range s.HostPorts {
		words = append(words, fmt.Sprint("port=", port.Port))
		if port.IP != "" || port.Protocol != "TCP" {
			w.lose("port %d is %s on address %q", port.Port, port.Protocol, port.IP)
		}
	}
	for _, spread := range s.Spread {
		words = append(words, w.spread(spread))
	}
	for _, term := range s.Affinity {
		words = append(words, "together="+w.term(s, term))
	}
	for _, term := range s.AntiAffinity {
		words = append(words, "apart="+w.term(s, term))
	}
	return strings.Join(words, " ")
}

func (w *script) alternative(a cluster.Alternative) string {
	if a.Names.IsAny() {
		return "need=" + demands(a.Labels)
	}
	names, finite := a.Names.Values()
	if !finite || a.Labels.Len() > 0 {
		w.lose("a pod needs %s and %s", a.Names, a.Labels)
	}
	return "named=" + strings.Join(names, "|")
}

func (w *script) toleration(t cluster.Toleration) string {
	if t.Key == "" {
		return "tolerate=*"
	}
	text := "tolerate=" + t.Key
	switch t.Operator {
	case cluster.TolerationEqual:
		text += "=" + t.Value
	case cluster.TolerationLt, cluster.TolerationGt:
		w.lose("toleration %v", t)
	}
	if t.Effect != "" {
		text += ":" + t.Effect
	}
	return text
}

func (w *script) selector(s cluster.Selector) string {
	if !s.Enabled {
		return "/nobody-has=this"
	}
	return "/" + demands(s.Labels)
}

func (w *script) spread(s cluster.Spread) string {
	text := fmt.Sprintf("spread=%s:%d", short(s.Key), s.MaxSkew)
	if s.MinDomains != 1 {
		text += fmt.Sprint(":", s.MinDomains)
	}
	text += w.selector(s.Pods)
	if s.IgnoreAffinity {
		text += "/ignore-affinity"
	}
	if s.HonorTaints {
		text += "/honor-taints"
	}
	return text
}

func (w *script) term(s *cluster.Shape, t cluster.AffinityTerm) string {
	text := short(t.Key) + w.selector(t.Pods)
	if len(t.Namespaces) > 1 || len(t.Namespaces) == 1 && t.NamespaceSelector.Enabled {
		w.lose("a term is about %v (%s)", t.Namespaces, t.NamespaceSelector)
	}
	if len(t.Namespaces) == 1 && t.Namespaces[0] != s.Namespace {
		text += "/ns=" + t.Namespaces[0]
	}
	if t.NamespaceSelector.Enabled {
		text += "/nslabels=" + demands(t.NamespaceSelector.Labels)
	}
	return text
}

// short returns a label in the form of scripts, in which slashes have a meaning.
func short(key string) string { return enginetest.Shorten(key) }
