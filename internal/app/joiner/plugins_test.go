package joiner

import (
	"net/http"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/plugin"
	kwok "github.com/joiner-autoscaler/joiner/internal/provider/kwok/plug"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sky is a plug-in whose node classes a cluster may lack.
type sky struct{ plugin.Plugin }

func (sky) Name() string { return "sky" }

func (sky) Class() plugin.Class {
	return plugin.Class{Resource: schema.GroupVersionResource{Group: "sky.example.com", Version: "v1",
		Resource: "skynodeclasses"}}
}

func (sky) Lacks() string { return "sky-name" }

// names lists what plug-ins are called.
func names(plugins []plugin.Plugin) string {
	text := ""
	for _, p := range plugins {
		text += p.Name() + " "
	}
	return text
}

// A process runs the providers that --providers names, each once and in one order, or all when it names none.
func TestProvidersAreNamed(t *testing.T) {
	t.Parallel()
	all := []plugin.Plugin{kwok.New(), sky{}}
	for _, c := range []struct {
		asked []string
		want  string
	}{{nil, "kwok sky "}, {[]string{"sky"}, "sky "}, {[]string{"sky", "kwok", "sky"}, "kwok sky "}} {
		if chosen, err := named(all, c.asked); err != nil || names(chosen) != c.want {
			t.Errorf("--providers=%v: %s, error %v; want %s", c.asked, names(chosen), err, c.want)
		}
	}
	_, err := named(all, []string{"kwok", "aws"})
	want(t, err, `--providers has "aws"`, "kwok, sky")
}

// A provider that lacks a setting is left out and told of; asked for by name it is a mistake.
func TestProvidersWithoutTheirSettings(t *testing.T) {
	t.Parallel()
	all := []plugin.Plugin{kwok.New(), sky{}}
	var told string
	list, err := able(all, false, func(name, lacks string) { told += name + ":" + lacks })
	if err != nil || names(list) != "kwok " || told != "sky:sky-name" {
		t.Errorf("%s, told %q, error %v; want kwok, and sky told of", names(list), told, err)
	}
	_, err = able(all, true, func(string, string) { t.Error("told of what is a mistake") })
	want(t, err, `"sky"`, "--sky-name")
}

// A provider whose node classes the cluster does not know is left out, unless it was named, or no provider would be
// left.
func TestWhichProvidersACluterHasTheKindsOf(t *testing.T) {
	t.Parallel()
	ours := func(more map[string][]string) map[string][]string {
		more["karpenter.sh/v1"], more["karpenter.sh/v1alpha1"] = []string{"nodepools", "nodeclaims"},
			[]string{"nodeoverlays"}
		return more
	}
	one := ours(map[string][]string{"karpenter.kwok.sh/v1alpha1": {"kwoknodeclasses"}})
	both := ours(map[string][]string{"karpenter.kwok.sh/v1alpha1": {"kwoknodeclasses"},
		"sky.example.com/v1": {"skynodeclasses"}})
	all := []plugin.Plugin{kwok.New(), sky{}}
	for name, c := range map[string]struct {
		served  map[string][]string
		byName  bool
		want    string
		missing []string
	}{
		"both":              {both, false, "kwok sky ", nil},
		"both, by name":     {both, true, "kwok sky ", nil},
		"one":               {one, false, "kwok ", nil},
		"one, both by name": {one, true, "", []string{"does not know skynodeclasses.sky.example.com", "api/crd"}},
		"none": {ours(map[string][]string{}), false, "",
			[]string{"does not know kwoknodeclasses.karpenter.kwok.sh or skynodeclasses.sky.example.com"}},
	} {
		installed, err := checkCluster(t.Context(), apiServer(t, http.StatusOK, c.served), all, c.byName)
		if (err != nil) != (c.missing != nil) || names(installed) != c.want {
			t.Errorf("%s: %s, error %v; want %s", name, names(installed), err, c.want)
			continue
		}
		if err != nil {
			want(t, err, c.missing...)
		}
	}
}
