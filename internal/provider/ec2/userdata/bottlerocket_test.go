package userdata_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// settings is what Bottlerocket reads, by its reference of settings.
type settings struct {
	Settings struct {
		MOTD       string `toml:"motd"`
		Kubernetes struct {
			Name       string              `toml:"cluster-name"`
			Server     string              `toml:"api-server"`
			CA         string              `toml:"cluster-certificate"`
			DNS        string              `toml:"cluster-dns-ip"`
			MaxPods    int                 `toml:"max-pods"`
			Labels     map[string]string   `toml:"node-labels"`
			Taints     map[string][]string `toml:"node-taints"`
			Reserved   map[string]string   `toml:"kube-reserved"`
			Hard       map[string]string   `toml:"eviction-hard"`
			High       string              `toml:"image-gc-high-threshold-percent"`
			Quota      bool                `toml:"cpu-cfs-quota-enforced"`
			EventBurst int                 `toml:"event-burst"`
		} `toml:"kubernetes"`
		Commands map[string]struct {
			Commands  [][]string `toml:"commands"`
			Mode      string     `toml:"mode"`
			Essential bool       `toml:"essential"`
		} `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

func readSettings(t *testing.T, text string) settings {
	t.Helper()
	var s settings
	if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&s); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return s
}

// E-33, E-34: the user's settings are kept, and ours decide about the cluster, pods, labels and taints.
func TestBottlerocketKeepsTheUsersSettings(t *testing.T) {
	t.Parallel()
	const user = "[settings]\nmotd = \"hello\"\n[settings.kubernetes]\nmax-pods = 3\ncluster-name = \"other\"\nevent-burst = 20\n" +
		"[settings.kubernetes.node-labels]\nown = \"1\"\nteam = \"other\"\n[settings.kubernetes.node-taints]\nown = [\"1:NoSchedule\"]\n" +
		"[settings.bootstrap-commands.aa]\ncommands = [[\"apiclient\", \"set\"]]\nmode = \"once\"\nessential = false\n"
	text, err := userdata.Bottlerocket(user, node(), "1.50.0")
	if err != nil {
		t.Fatal(err)
	}
	s := readSettings(t, text).Settings
	k := s.Kubernetes
	if s.MOTD != "hello" || k.EventBurst != 20 || k.Labels["own"] != "1" ||
		!slices.Equal(k.Taints["own"], []string{"1:NoSchedule"}) || len(s.Commands) != 2 {
		t.Errorf("settings of the user's are missing: %+v", s)
	}
	if k.Name != "prod" || k.Server != "https://prod.example.com" || k.CA != "Y2E=" || k.DNS != "10.100.0.10" ||
		k.MaxPods != 58 ||
		k.Labels["team"] != "web" || k.High != "85" || !k.Quota || k.Reserved["cpu"] != "100m" ||
		k.Hard["memory.available"] != "5%" {
		t.Errorf("ours are %+v", k)
	}
	if !slices.Equal(k.Taints["dedicated"], []string{"web:NoSchedule"}) ||
		!slices.Equal(k.Taints["karpenter.sh/unregistered"], []string{":NoExecute"}) {
		t.Errorf("taints are %v", k.Taints)
	}
}

// E-33: the disks of an instance are mounted by a command. Releases before 1.46 want the directories named.
func TestBottlerocketMountsTheDisksOfTheInstance(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]int{"": 3, "1.46.0": 3, "v1.50.0": 3, "2.0.0": 3, "latest": 3, "1.45.9": 7,
		"v1.20.1": 7, "0.9.0": 7} {
		text, err := userdata.Bottlerocket("", node(), release)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range readSettings(t, text).Settings.Commands {
			if len(c.Commands) != 2 || len(c.Commands[1]) != want || c.Mode != "always" || !c.Essential {
				t.Errorf("release %q: %+v, want %d words", release, c, want)
			}
		}
	}
	n := node()
	n.LocalStorage = false
	if text, err := userdata.Bottlerocket("", n, ""); err != nil || strings.Contains(text, "bootstrap-commands") {
		t.Errorf("without RAID0: %v\n%s", err, text)
	}
}

// E-75: invalid input is named by line, and never quoted.
func TestBottlerocketNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"[settings]\nmotd = hunter2\n":                     "spec.userData, line 2: it is no TOML",
		"#!/bin/bash\necho hunter2":                        "spec.userData, line 2: it is no TOML",
		"settings = \"hunter2\"":                           "settings is no table",
		"[settings]\nkubernetes = 3":                       "settings.kubernetes is no table",
		"[settings.kubernetes]\nnode-labels = [\"a\"]":     "settings.kubernetes.node-labels is no table",
		"[settings]\nbootstrap-commands = \"hunter2\"\n":   "settings.bootstrap-commands is no table",
		"[settings.kubernetes]\nnode-taints = \"hunter2\"": "settings.kubernetes.node-taints is no table",
	} {
		_, err := userdata.Bottlerocket(user, node(), "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
}
