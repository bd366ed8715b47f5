// Package chartstest renders the charts for tests, with values that differ from their own. The renderer has the
// functions of package charts. tools/helm compares what it makes with what Helm makes, and localcluster/e2e/charts
// installs by Helm.
package chartstest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
)

// Namespace is the namespace of the releases that are rendered.
const Namespace = "hcp-a"

// Release is the name of the releases that are rendered, unless another one is asked for.
const Release = "release"

// Served are the kinds that a cluster serves, each as group/version/kind.
type Served []string

// Has is .Capabilities.APIVersions.Has of Helm.
func (s Served) Has(version string) bool { return slices.Contains(s, version) }

// Nested takes values by their path, such as aws.region, and returns them as Helm gets them from a file.
func Nested(set map[string]any) map[string]any {
	nested := map[string]any{}
	for name, value := range set {
		where := nested
		parts := strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			if where[part] == nil {
				where[part] = map[string]any{}
			}
			where = where[part].(map[string]any)
		}
		where[parts[len(parts)-1]] = value
	}
	return nested
}

// over puts values over those of a chart, as Helm does: maps are merged, anything else is replaced, and null removes a
// value.
func over(own, given map[string]any) map[string]any {
	all := maps.Clone(own)
	for name, value := range given {
		if value == nil {
			delete(all, name)
			continue
		}
		inner, isMap := value.(map[string]any)
		if below, both := all[name].(map[string]any); isMap && both {
			all[name] = over(below, inner)
			continue
		}
		all[name] = value
	}
	return all
}

// Render executes the templates of a chart with its values, changed by set, in a cluster that serves these kinds
// beside those of Kubernetes. It returns the documents by kind and name.
func Render(chart string, set map[string]any, served Served) (map[string][]byte, error) {
	return RenderAs(Release, chart, set, served)
}

// RenderAs is Render for a release of another name.
func RenderAs(release, chart string, set map[string]any, served Served) (map[string][]byte, error) {
	own := map[string]any{}
	content, err := fs.ReadFile(charts.Files(), chart+"/values.yaml")
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(content, &own); err != nil {
		return nil, err
	}
	data := map[string]any{
		"Values": over(own, Nested(set)), "Files": files(chart),
		"Release":      map[string]any{"Namespace": Namespace, "Name": release},
		"Capabilities": map[string]any{"APIVersions": served},
	}
	templates, err := fs.Glob(charts.Files(), chart+"/templates/*.yaml")
	if err != nil || len(templates) == 0 {
		return nil, fmt.Errorf("no templates in %s: %w", chart, err)
	}
	documents := map[string][]byte{}
	for _, name := range templates {
		parsed, err := parse(chart, name)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, data); err != nil {
			return nil, err
		}
		if err := Split(out.String(), documents); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return documents, nil
}

// parse reads a template with those that the chart defines for all of them.
func parse(chart, name string) (*template.Template, error) {
	parsed := template.New(path.Base(name)).Option("missingkey=error").Funcs(charts.Functions())
	parsed.Funcs(template.FuncMap{"include": func(name string, data any) (string, error) {
		var out bytes.Buffer
		err := parsed.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}})
	helpers, err := fs.Glob(charts.Files(), chart+"/templates/_*.tpl")
	if err != nil {
		return nil, err
	}
	for _, from := range append(helpers, name) {
		content, err := fs.ReadFile(charts.Files(), from)
		if err != nil {
			return nil, err
		}
		if from == name {
			return parsed.Parse(string(content))
		}
		if _, err := parsed.New(path.Base(from)).Parse(string(content)); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// Split adds the documents of a text by kind and name. Two of the same are an error.
func Split(text string, into map[string][]byte) error {
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("%w\n%s", err, document)
		}
		if head.Kind == "" {
			continue
		}
		name := head.Kind + "/" + head.Metadata.Name
		if into[name] != nil {
			return fmt.Errorf("%s is there twice", name)
		}
		into[name] = []byte(document + "\n")
	}
	return nil
}

// files are those of a chart, as Helm shows them to its templates.
type files string

// Get is .Files.Get of Helm, with an error instead of nothing for a file that is not there.
func (f files) Get(name string) (string, error) {
	content, err := fs.ReadFile(charts.Files(), string(f)+"/"+name)
	return string(content), err
}
