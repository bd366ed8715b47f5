package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/convert"
)

// poolBlock is a NodePool with its kubelet block, "" if it has none.
type poolBlock struct {
	pool  Object
	block string
	old   bool // written in v1beta1; v1 pools get a finding for the annotation
}

// remember keeps a NodePool, in the form of v1, for kubelets.
func (c *checker) remember(o Object, old bool) {
	ref := at(o.Content, "spec", "template", "spec", "nodeClassRef")
	block, readable := convert.Kubelet(annotationsOf(o.Content))
	if ref == nil || !readable {
		return
	}
	class := text(ref, "kind") + "." + text(ref, "group") + " " + text(ref, "name")
	c.classes[class] = append(c.classes[class], poolBlock{o, canonical(block), old})
}

// kubelets compares the blocks of NodePools that share a node class. v1 has one block for each class, so pools with
// different blocks need different classes.
func (c *checker) kubelets() {
	for _, class := range slices.Sorted(maps.Keys(c.classes)) {
		pools := map[string][]string{} // by block
		for _, p := range c.classes[class] {
			name := text(metadata(p.pool.Content), "name")
			if !slices.Contains(pools[p.block], name) {
				pools[p.block] = append(pools[p.block], name)
			}
		}
		blocks := slices.Sorted(maps.Keys(pools))
		if len(blocks) == 1 && blocks[0] == "" {
			continue
		}
		var told []string
		for _, block := range blocks {
			slices.Sort(pools[block])
			what := "no kubelet block"
			if block != "" {
				what = "the kubelet block " + shorten(block)
			}
			told = append(told, fmt.Sprintf("%s: %s", strings.Join(pools[block], ", "), what))
		}
		for _, p := range c.classes[class] {
			switch {
			case len(blocks) > 1:
				c.find(p.pool, DifferentKubelets, "its node class "+class+" is shared with different kubelet blocks ("+
					strings.Join(told, "; ")+")",
					fmt.Sprintf("make %d node classes of it, one for each block, and refer to them", len(blocks)))
			case p.old:
				c.find(p.pool, KubeletInNodePool, "it has a kubelet block: "+shorten(p.block),
					"write it to spec.kubelet of the node class "+class)
			}
		}
	}
}

// canonical returns a block with sorted keys.
func canonical(block json.RawMessage) string {
	if len(block) == 0 {
		return ""
	}
	content, err := convert.Decode(block)
	if err != nil {
		return string(block)
	}
	written, err := json.Marshal(content)
	if err != nil {
		return string(block)
	}
	return string(written)
}

// shorten puts a foreign value on one line of limited length.
func shorten(value string) string {
	const most = 200
	value = strings.Join(strings.Fields(value), " ")
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "..."
	}
	return value
}

func metadata(o map[string]any) map[string]any { return at(o, "metadata") }

// annotationsOf returns the annotations that are strings.
func annotationsOf(o map[string]any) map[string]string {
	found := map[string]string{}
	for key, value := range at(o, "metadata", "annotations") {
		if content, isString := value.(string); isString {
			found[key] = content
		}
	}
	return found
}

func at(o map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		o, _ = o[key].(map[string]any)
	}
	return o
}

func text(o map[string]any, key string) string {
	value, _ := o[key].(string)
	return value
}
