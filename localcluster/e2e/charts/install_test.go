package charts

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	ours "github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

// others returns other values than the chart's own, for all values that can be changed together.
func others(chart string) map[string]any {
	set := chartstest.Needed(chart)
	for _, change := range chartstest.Changes(chart) {
		switch change.Path { // each of these removes an object in which another value shows
		case "monitoring.enabled", "alerts.enabled", "platforms", "own", "userData.fromSecrets", "infraFrom",
			"authentication.mode":
			continue
		case "controller.image.repository": // image is given
			continue
		case "crds.install", "karpenter", "aws", "kwok", "capacityBuffers", "nodeSchedulingGroups":
			// the test of what is switched off
			continue
		}
		maps.Copy(set, change.With)
		set[change.Path] = change.Value
	}
	delete(set, "authentication.mode") // a path is shown, or a certificate
	if set["aws.clusterName"] != nil { // by the keys of aws; settings has the same ones
		for path := range set {
			if key, is := strings.CutPrefix(path, "settings."); is && slices.Contains(ofEC2(), key) {
				delete(set, path)
			}
		}
	}
	return set
}

// ofEC2 returns the keys of settings that aws has too.
func ofEC2() []string {
	var own struct{ EC2 map[string]string }
	text, err := fs.ReadFile(ours.Files(), ours.Joiner+"/files/karpenter.yaml")
	if err != nil || yaml.Unmarshal(text, &own) != nil || len(own.EC2) == 0 {
		panic("the chart joiner has no keys of EC2 in files/karpenter.yaml")
	}
	return slices.Collect(maps.Keys(own.EC2))
}

// definitions returns those in a chart's folder crds, named as in the inventory.
func definitions(t *testing.T, chart string) (names []string) {
	t.Helper()
	found, err := fs.Glob(ours.Files(), chart+"/crds/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		plural, group, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".yaml"), "_")
		names = append(names, "CustomResourceDefinition/"+group+"."+plural)
	}
	return names
}

// kept returns what stays when a release is removed, according to the chart's page.
func kept(t *testing.T, chart string, set map[string]any) []string {
	t.Helper()
	names := definitions(t, chart)
	documents, err := chartstest.RenderAs(chart, chart, set, served())
	if err != nil {
		t.Fatal(err)
	}
	for name := range documents {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// U-11: each chart is installed, upgraded to other values, rolled back and removed. Each time the API server has
// what was rendered and nothing else. In the end it has what stays according to the page.
func TestU11_HelmInstallsUpgradesRollsBackAndRemoves(t *testing.T) {
	eachHelm(t, func(h *helm) {
		for _, chart := range chartstest.Charts() {
			before := h.inventory(h.t)
			first, second := chartstest.Needed(chart), others(chart)
			stays := kept(h.t, chart, first)
			if chart == ours.Operator {
				first["crds.install"], second["crds.install"] = true, true
				stays = kept(h.t, chart, first)
			}
			notes := h.put("install", chart, first)
			h.holds("installed "+chart, chart, first, before, stays...)
			h.commandsRun(chart, notes)
			h.put("upgrade", chart, second)
			h.holds("upgraded "+chart, chart, second, before, stays...)
			h.run("rollback", chart, "1")
			h.holds("rolled back "+chart, chart, first, before, stays...)
			h.run("uninstall", chart)
			if got := added(before, h.inventory(h.t)); !slices.Equal(got, stays) {
				h.t.Errorf("%s: after %s is removed there are %v, want %v", h.name, chart, got, stays)
			}
			h.removeDefinitions(stays)
		}
	})
}

// removeDefinitions removes what a release left, as the pages say, so that the next one begins as this one did.
func (h *helm) removeDefinitions(names []string) {
	h.t.Helper()
	for _, name := range names {
		_, err := h.Kubectl(h.t.Context(), "", "delete", "crd", path.Base(name), "--wait=true", "--timeout=60s")
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// commandsRun runs each kubectl command in the notes of a release. No pod runs here, so commands that wait for pods
// are only checked for the existence of what they wait for.
func (h *helm) commandsRun(chart, notes string) {
	h.t.Helper()
	run := 0
	for line := range strings.Lines(notes) {
		command, is := strings.CutPrefix(strings.TrimSpace(line), "kubectl ")
		if !is {
			continue
		}
		run++
		command = strings.NewReplacer(" rollout status ", " get ", " get secret hcco-kubeconfig", " get secrets",
			"NODE", "nowhere", "'", "").Replace(command)
		if strings.HasPrefix(command, "get crd") && chart == ours.Guest {
			continue // Karpenter's definitions are not here
		}
		_, err := h.Kubectl(h.t.Context(), "", strings.Fields(command)...)
		if err != nil && !strings.Contains(err.Error(), "serviceaccount") {
			h.t.Errorf("%s: the notes of %s: %v", h.name, chart, err)
		}
	}
	if run == 0 {
		h.t.Errorf("%s: the notes of %s tell no command:\n%s", h.name, chart, notes)
	}
}

// alone returns the changes without a visible effect when all others are made too: those that
// TestU11_HelmInstallsUpgradesRollsBackAndRemoves leaves.
func alone(t *testing.T, chart string) (left []chartstest.Change) {
	t.Helper()
	together := others(chart)
	with := rendered(t, chart, together)
	for _, change := range chartstest.Changes(chart) {
		without := maps.Clone(together)
		delete(without, change.Path)
		if value, needed := chartstest.Needed(chart)[change.Path]; needed {
			without[change.Path] = value
		}
		if value, needed := change.With[change.Path]; needed {
			without[change.Path] = value
		}
		if _, made := together[change.Path]; !made || maps.EqualFunc(with, rendered(t, chart, without), bytes.Equal) {
			left = append(left, change)
		}
	}
	return left
}

// rendered returns the documents of a chart, or nothing if a value needs another one that is missing.
func rendered(t *testing.T, chart string, set map[string]any) map[string][]byte {
	t.Helper()
	documents, err := chartstest.RenderAs(chart, chart, set, served())
	if err != nil && !strings.Contains(err.Error(), ": want ") {
		t.Fatal(err)
	}
	return documents
}

// U-11: the API server accepts every value of every chart, either together with all others, as in the test before, or
// alone. A release is upgraded to each of the latter in turn.
func TestU11_TheAPIServerTakesEveryValue(t *testing.T) {
	h := newHelm(t, versions[1].name, versions[1].env)
	for _, chart := range chartstest.Charts() {
		t.Run(chart, func(t *testing.T) {
			h := &helm{plain: h.plain, t: t, path: h.path, name: h.name}
			before := h.inventory(t)
			set := chartstest.Needed(chart)
			if chart == ours.Operator {
				set["crds.install"] = true
			}
			stays := kept(t, chart, set)
			h.put("install", chart, set)
			changes := alone(t, chart)
			if chart == ours.Webhook {
				changes = append(changes, chartstest.Change{Path: "policy.emergencyOverride", Value: "Automatic"})
			}
			t.Logf("%d of %d values are changed alone", len(changes), len(chartstest.Changes(chart)))
			for _, change := range changes {
				set := change.Set(chart)
				h.put("upgrade", chart, set, "--history-max", "2")
				h.holds(fmt.Sprintf("%s with %s: %v", chart, change.Path, change.Value), chart, set, before, stays...)
			}
			h.run("uninstall", chart)
			h.removeDefinitions(stays)
		})
	}
}

// U-11: `helm show readme` shows the page of each chart, and `helm lint` finds nothing.
func TestU11_HelmShowsThePages(t *testing.T) {
	eachHelm(t, func(h *helm) {
		for _, chart := range chartstest.Charts() {
			want, err := os.ReadFile(source(chart) + "/README.md")
			if err != nil {
				h.t.Fatal(err)
			}
			if got := h.run("show", "readme", source(chart)); !strings.Contains(got, string(want)) {
				h.t.Errorf("%s: %s: the page shown is\n%s", h.name, chart, got)
			}
		}
	})
}
