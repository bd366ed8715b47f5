package openshiftapi

import (
	"embed"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed crd/*.yaml config/v1/tests/*/*.yaml
var files embed.FS

// Enabled is the definition of Scheduler with the feature gate on.
func Enabled() ([]byte, error) { return files.ReadFile("crd/schedulers-enabled.yaml") }

// Disabled is the definition with the feature gate off, which is that of a cluster of today.
func Disabled() ([]byte, error) { return files.ReadFile("crd/schedulers-disabled.yaml") }

// Suite is a file of tests, as openshift/api's runner reads it.
type Suite struct {
	APIVersion   string   `json:"apiVersion"`
	Name         string   `json:"name"`
	CRDName      string   `json:"crdName"`
	FeatureGates []string `json:"featureGates"`
	Tests        struct {
		OnCreate []Test `json:"onCreate,omitempty"`
		OnUpdate []Test `json:"onUpdate,omitempty"`
	} `json:"tests"`
}

// Test is one write, or two, and what is stored then or why it is refused. The objects are texts in YAML.
type Test struct {
	Name          string `json:"name"`
	Initial       string `json:"initial"`
	Updated       string `json:"updated,omitempty"`
	Expected      string `json:"expected,omitempty"`
	ExpectedError string `json:"expectedError,omitempty"`
}

// Off says whether the suite is one for the definition without the gate.
func (s Suite) Off() bool {
	return len(s.FeatureGates) == 1 && strings.HasPrefix(s.FeatureGates[0], "-")
}

// Suites reads all files of tests.
func Suites() ([]Suite, error) {
	names, err := fs.Glob(files, "config/v1/tests/*/*.yaml")
	if err != nil {
		return nil, err
	}
	var suites []Suite
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var suite Suite
		if err := yaml.UnmarshalStrict(content, &suite); err != nil {
			return nil, err
		}
		suites = append(suites, suite)
	}
	return suites, nil
}
