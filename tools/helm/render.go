package helm

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	action3 "helm.sh/helm/v3/pkg/action"
	loader3 "helm.sh/helm/v3/pkg/chart/loader"
	chartutil3 "helm.sh/helm/v3/pkg/chartutil"
	action4 "helm.sh/helm/v4/pkg/action"
	common4 "helm.sh/helm/v4/pkg/chart/common"
	loader4 "helm.sh/helm/v4/pkg/chart/loader"
	release4 "helm.sh/helm/v4/pkg/release/v1"
)

// Rendered is what Helm makes of a chart.
type Rendered struct {
	Manifest string
	Notes    string
}

// Release says which chart is rendered, and with what.
type Release struct {
	Folder    string // of the chart
	Namespace string
	Values    map[string]any
	Served    []string // kinds beside those of Kubernetes, as group/version/kind
}

// name is the name of every release: no chart names its objects by it. kubernetes is the version of the cluster.
const name, kubernetes = "release", "v1.36.0"

// Version is a version of Helm.
type Version struct {
	Name   string
	Render func(Release) (Rendered, error)
	// Lint returns Helm's complaints about a chart, warnings included.
	Lint func(folder string, values map[string]any) error
}

// Versions returns the versions of Helm that the charts support.
func Versions() []Version {
	return []Version{{"Helm 3", render3, lint3}, {"Helm 4", render4, lint4}}
}

// render3 is `helm template` of Helm 3.
func render3(r Release) (Rendered, error) {
	chart, err := loader3.Load(r.Folder)
	if err != nil {
		return Rendered{}, err
	}
	install := action3.NewInstall(&action3.Configuration{Log: func(string, ...any) {}})
	install.ClientOnly, install.DryRun = true, true
	install.ReleaseName, install.Namespace = name, r.Namespace
	install.APIVersions = chartutil3.VersionSet(r.Served)
	if install.KubeVersion, err = chartutil3.ParseKubeVersion(kubernetes); err != nil {
		return Rendered{}, err
	}
	made, err := install.Run(chart, r.Values)
	if err != nil {
		return Rendered{}, err
	}
	return Rendered{made.Manifest, made.Info.Notes}, nil
}

// render4 is `helm template` of Helm 4.
func render4(r Release) (Rendered, error) {
	chart, err := loader4.Load(r.Folder)
	if err != nil {
		return Rendered{}, err
	}
	install := action4.NewInstall(action4.NewConfiguration(
		action4.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil))))
	install.DryRunStrategy = action4.DryRunClient
	install.ReleaseName, install.Namespace = name, r.Namespace
	install.APIVersions = common4.VersionSet(r.Served)
	if install.KubeVersion, err = common4.ParseKubeVersion(kubernetes); err != nil {
		return Rendered{}, err
	}
	made, err := install.Run(chart, r.Values)
	if err != nil {
		return Rendered{}, err
	}
	release, is := made.(*release4.Release)
	if !is {
		return Rendered{}, fmt.Errorf("Helm 4 made a %T of the chart: want a release of its first version", made)
	}
	return Rendered{release.Manifest, release.Info.Notes}, nil
}

func lint3(folder string, values map[string]any) error {
	lint := action3.NewLint()
	lint.Strict = true
	return errors.Join(lint.Run([]string{folder}, values).Errors...)
}

func lint4(folder string, values map[string]any) error {
	lint := action4.NewLint()
	lint.Strict = true
	return errors.Join(lint.Run([]string{folder}, values).Errors...)
}
