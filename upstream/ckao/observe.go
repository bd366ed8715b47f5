package ckao

import (
	_ "embed" // the stanza
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Plugin is the name of the admission plugin, and of its configuration.
const Plugin = "scheduling.openshift.io/NodeSchedulingPolicy"

// stanza is the configuration of the plugin as a part of KubeAPIServerConfig. It is made of the list of the
// platform by `make rewrite`.
//
//go:embed pluginconfig.yaml
var stanza []byte

// Stanza returns the part of KubeAPIServerConfig that the rule writes.
func Stanza() []byte { return append([]byte(nil), stanza...) }

// Configuration is what the plugin is handed of the stanza: the value below its name.
func Configuration() ([]byte, error) {
	var written struct {
		Admission struct {
			PluginConfig map[string]struct {
				Configuration any `json:"configuration"`
			} `json:"pluginConfig"`
		} `json:"admission"`
	}
	if err := yaml.UnmarshalStrict(stanza, &written); err != nil {
		return nil, fmt.Errorf("stanza of %s: %w", Plugin, err)
	}
	return yaml.Marshal(written.Admission.PluginConfig[Plugin].Configuration)
}

// Write makes the text of the stanza from a list.
func Write(list platform.List) ([]byte, error) {
	config, err := yaml.Marshal(list.Config())
	if err != nil {
		return nil, err
	}
	var configuration map[string]any
	if err := yaml.Unmarshal(config, &configuration); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(under(configuration, "admission", "pluginConfig", Plugin, "configuration"))
	if err != nil {
		return nil, err
	}
	const head = "# Made of internal/admission/platform/components.yaml, where each entry has its source, by `make rewrite`.\n"
	return append([]byte(head), text...), nil
}

// Gates is what an observer knows of the feature gates.
type Gates struct {
	// Observed says whether they are known yet.
	Observed bool
	// Enabled are those that are on.
	Enabled []string
}

// Observe is the rule: what of the observed configuration the plugin's is from now on. Existing is what was
// observed before, as a KubeAPIServerConfig; nothing else of it comes back. There is no third argument: what
// Scheduler says is read by the plugin itself, so that a change of it is in force within seconds and needs no other
// revision of kube-apiserver. That matters most for the change that takes a mistaken Enable back, which may be what
// keeps the pods of the next revision from being created.
func Observe(existing map[string]any, gates Gates) (map[string]any, error) {
	if !gates.Observed {
		return only(existing, "admission", "pluginConfig", Plugin), nil
	}
	for _, gate := range gates.Enabled {
		if gate != evaluator.FeatureGate {
			continue
		}
		written := map[string]any{}
		if err := yaml.Unmarshal(stanza, &written); err != nil {
			return nil, fmt.Errorf("stanza of %s: %w", Plugin, err)
		}
		return written, nil
	}
	return map[string]any{}, nil
}

// under puts a value below a path.
func under(value any, path ...string) map[string]any {
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return value.(map[string]any)
}

// only is what is at a path and nothing beside it, empty where there is nothing.
func only(all map[string]any, path ...string) map[string]any {
	var value any = maps.Clone(all)
	for _, key := range path {
		level, is := value.(map[string]any)
		if !is || level[key] == nil {
			return map[string]any{}
		}
		value = level[key]
	}
	return under(value, path...)
}
