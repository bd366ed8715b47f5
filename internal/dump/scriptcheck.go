package dump

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// mostRefused bounds how many inexpressible things are named.
const mostRefused = 20

// unlike parses the script, and names what the records have and it lacks.
func (p *scripter) unlike(body string) ([]string, error) {
	space := resources.NewSpace()
	for _, name := range p.names {
		space.Index(name)
	}
	s, err := script.ParseWith(space, body)
	if err != nil {
		return nil, err
	}
	said := contentOf(Dump{Snapshot: s})
	if said, err = said.copied(); err != nil {
		return nil, err
	}
	renameClaims(&said)
	if !slices.ContainsFunc(p.in.namespaces, func(n namespaceRecord) bool { return n.Name == "default" }) {
		said.namespaces = slices.DeleteFunc(said.namespaces, func(n namespaceRecord) bool {
			return n.Name == "default"
		})
	}
	n := naming{}
	if len(p.in.catalogues) > 1 {
		n.add("more than one catalogue")
	}
	for i, c := range p.in.catalogues[:min(1, len(p.in.catalogues))] {
		own := catalogueRecord{}
		if len(said.catalogues) > i {
			own = said.catalogues[i]
		}
		compare(&n, "type", c.Types, own.Types, func(t typeRecord) string { return t.Name })
		compare(&n, "offering of type", c.Offers, own.Offers,
			func(o offerRecord) string { return c.Types[o.Type].Name })
		for _, key := range c.WellKnown {
			if !slices.Contains(own.WellKnown, key) {
				n.add("label %s, which the provider decides and no type has", key)
			}
		}
	}
	compare(&n, "namespace", p.in.namespaces, said.namespaces, func(r namespaceRecord) string { return r.Name })
	compare(&n, "pool", p.in.pools, said.pools, func(r poolRecord) string { return r.Name })
	compare(&n, "pods", p.in.shapes, said.shapes, shapeName)
	compare(&n, "daemon", p.in.daemons, said.daemons, func(r daemonRecord) string { return r.Name })
	compare(&n, "node", p.in.nodes, said.nodes, func(r nodeRecord) string { return r.Name + r.Claim })
	compare(&n, "pdb", p.in.guards, said.guards, func(r guardRecord) string { return r.Namespace + "/" + r.Name })
	if len(p.in.holds) > 0 {
		n.add("launches that are held back")
	}
	if string(encoded(p.in.picture)) != string(encoded(said.picture)) {
		n.add("which pods wait")
	}
	if more := len(n.list) - mostRefused; more > 0 {
		n.list = append(n.list[:mostRefused], fmt.Sprintf("and %d more", more))
	}
	return n.list, nil
}

func shapeName(s shapeRecord) string {
	if len(s.Pods) == 0 {
		return "of a DaemonSet in " + s.Namespace
	}
	return s.Pods[0].Namespace + "/" + s.Pods[0].Name
}

// naming is a list of what scripts cannot say.
type naming struct{ list []string }

func (n *naming) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(n.list, text) {
		n.list = append(n.list, text)
	}
}

// compare names the fields in which records differ from those made from a script.
func compare[T any](n *naming, kind string, want, said []T, name func(T) string) {
	if len(want) != len(said) {
		n.add("%s: %d are there, and a script says %d", kind, len(want), len(said))
		return
	}
	for i, record := range want {
		a, b := fieldsOf(record), fieldsOf(said[i])
		for _, field := range slices.Sorted(maps.Keys(a)) {
			if a[field] != b[field] {
				n.add("%s %s: %s", kind, name(record), field)
			}
		}
		for _, field := range slices.Sorted(maps.Keys(b)) {
			if _, has := a[field]; !has {
				n.add("%s %s: no %s", kind, name(record), field)
			}
		}
	}
}

// fieldsOf returns the JSON texts of a record's fields, without zero amounts at the end of lists.
func fieldsOf(record any) map[string]string {
	var fields map[string]any
	_ = json.Unmarshal(encoded(record), &fields) // it was just encoded
	texts := map[string]string{}
	for name, value := range fields {
		texts[name] = string(encoded(trimmed(name, value)))
		if texts[name] == "[]" && slices.Contains(amounts(), name) {
			delete(texts, name)
		}
	}
	return texts
}

// amounts returns the fields that hold an amount of each resource.
func amounts() []string { return []string{"capacity", "allocatable", "requests", "used", "resources"} }

// trimmed removes zeros at the end of amounts.
func trimmed(name string, value any) any {
	switch value := value.(type) {
	case []any:
		for slices.Contains(amounts(), name) && len(value) > 0 && value[len(value)-1] == float64(0) {
			value = value[:len(value)-1]
		}
		return value
	case map[string]any:
		for name := range value {
			value[name] = trimmed(name, value[name])
		}
	}
	return value
}
