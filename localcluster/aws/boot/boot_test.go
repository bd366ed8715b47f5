package boot_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/boot"
)

const authority = "-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"

// node is one with something in every field.
func node() userdata.Node {
	return userdata.Node{
		Cluster: userdata.Cluster{Name: "prod", Endpoint: "https://prod.example.com", CIDR: "10.100.0.0/16",
			CA: base64.StdEncoding.EncodeToString([]byte(authority))},
		Kubelet: &awsv1.KubeletConfiguration{
			MaxPods: new(int32(500)), KubeReserved: map[string]string{"cpu": "100m"},
			SystemReserved: map[string]string{"memory": "50Mi"},
			EvictionHard:   map[string]string{"memory.available": "5%"}, ImageGCHighThresholdPercent: new(int32(85)),
			CPUCFSQuota: new(true),
		},
		MaxPods: 58, DNS: []string{"10.100.0.10"},
		Labels: map[string]string{"team": "web", "karpenter.sh/nodepool": "default"}, Taints: []corev1.Taint{
			{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule},
			{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
		},
		LocalStorage: true,
	}
}

// want returns the configuration that a kubelet must have of node.
func want(cidr string) boot.Config {
	n := node()
	return boot.Config{
		Cluster: boot.Cluster{Name: "prod", Endpoint: "https://prod.example.com", CA: []byte(authority), CIDR: cidr},
		Labels:  n.Labels, Taints: n.Taints, MaxPods: 58, DNS: n.DNS, Disks: true,
		KubeReserved: n.Kubelet.KubeReserved, SystemReserved: n.Kubelet.SystemReserved,
		EvictionHard: n.Kubelet.EvictionHard,
	}
}

// E-32, E-33: what package userdata writes is read by a reader that knows nothing of it, field by field.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	text, err := userdata.AL2023("#!/bin/bash\necho hello\n", node())
	if err != nil {
		t.Fatal(err)
	}
	got, err := boot.AL2023([]byte(text))
	if w := want("10.100.0.0/16"); err != nil || !reflect.DeepEqual(got, w) {
		t.Errorf("AL2023: %v\n got %+v\nwant %+v", err, got, w)
	}
	text, err = userdata.Bottlerocket("[settings]\nmotd = \"hello\"\n[settings.kubernetes]\nevent-burst = 20\n",
		node(), "1.50.0")
	if err != nil {
		t.Fatal(err)
	}
	got, err = boot.Bottlerocket([]byte(text))
	if w := want(""); err != nil || !reflect.DeepEqual(got, w) {
		t.Errorf("Bottlerocket: %v\n got %+v\nwant %+v", err, got, w)
	}
}

// config is a NodeConfig by nodeadm's documentation, with further lines below spec.kubelet.
func config(kubelet string) string {
	return fmt.Sprintf(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: my-cluster
    apiServerEndpoint: https://example.com
    certificateAuthority: %s
    cidr: 10.100.0.0/16
  kubelet:
%s`, base64.StdEncoding.EncodeToString([]byte(authority)), kubelet)
}

func multi(bodies ...string) string {
	text := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n"
	for _, body := range bodies {
		text += "--B\nContent-Type: application/node.eks.aws\n\n" + body + "\n"
	}
	return text + "--B--\n"
}

// E-32: of several NodeConfigs the later wins; maps are merged, flags appended.
func TestSeveralNodeConfigs(t *testing.T) {
	t.Parallel()
	first := config(
		"    config: {maxPods: 7, kubeReserved: {cpu: 1m, memory: 1Mi}}\n    flags: [--node-labels=a=1, --v=2]\n")
	second :=
		"---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config: {maxPods: 9, kubeReserved: {cpu: 2m}}\n" +
			"    flags: ['--node-labels=a=2,b=3']\n"
	for name, text := range map[string]string{"parts": multi(first, second), "documents": first + second} {
		got, err := boot.AL2023([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.MaxPods != 9 || got.KubeReserved["cpu"] != "2m" || got.KubeReserved["memory"] != "1Mi" ||
			!reflect.DeepEqual(got.Labels, map[string]string{"a": "2", "b": "3"}) || got.Cluster.Name != "my-cluster" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	back, err := boot.AL2023([]byte(multi(second, first)))
	if err != nil || back.MaxPods != 7 || back.Labels["a"] != "1" {
		t.Errorf("the other way round: %+v, %v", back, err)
	}
}

// E-32: user data that makes no node is reported, with its place and the reason.
func TestWhatAL2023CannotRead(t *testing.T) {
	t.Parallel()
	good := config("    config: {maxPods: 7}\n")
	for name, row := range map[string]struct {
		text string
		says []string
	}{
		"nothing": {"", []string{"no multipart document"}},
		"script":  {"#!/bin/bash\n/etc/eks/bootstrap.sh prod\n", []string{"no multipart document"}},
		"no NodeConfig": {strings.ReplaceAll(multi(good), "application/node.eks.aws", "text/x-shellscript"),
			[]string{"no part of type"}},
		"cut":             {strings.TrimSuffix(multi(good), "--B--\n"), []string{"part 1", "EOF"}},
		"no YAML":         {multi(good, "a: [\n"), []string{"part 2"}},
		"unknown field":   {multi(strings.Replace(good, "cidr:", "cider:", 1)), []string{"part 1", "cider"}},
		"unknown setting": {multi(config("    config: {maxPod: 7}\n")), []string{"kubelet.config", "maxPod"}},
		"wrong type":      {multi(config("    config: {maxPods: many}\n")), []string{"kubelet.config", "maxPods"}},
		"other kind":      {multi(strings.Replace(good, "v1alpha1", "v1", 1)), []string{"part 1", "node.eks.aws/v1"}},
		"no cluster":      {multi(strings.Replace(good, "my-cluster", "''", 1)), []string{"name of the cluster"}},
		"no CIDR":         {multi(strings.Replace(good, "10.100.0.0/16", "''", 1)), []string{"cluster.cidr"}},
		"endpoint":        {multi(strings.Replace(good, "https://", "", 1)), []string{"endpoint", `"example.com"`}},
		"no authority":    {multi(strings.Replace(good, "LS0t", "AS0t", 1)), []string{"certificate authority"}},
		"no base64":       {multi(strings.Replace(good, "LS0t", "LS0", 1)), []string{"part 1", "base64"}},
		"reserved label": {multi(config("    flags: ['--node-labels=karpenter.k8s.io/x=1']\n")),
			[]string{"karpenter.k8s.io/x"}},
		"no label": {multi(config("    flags: ['--node-labels=a=b c']\n")), []string{"a=b c"}},
		"no flag":  {multi(config("    flags: ['node-labels=a=b']\n")), []string{"node-labels=a=b"}},
		"taint": {multi(config("    config: {registerWithTaints: [{key: a, effect: Never}]}\n")),
			[]string{"taint a", "Never"}},
		"amount": {multi(config("    config: {kubeReserved: {cpu: much}}\n")), []string{"cpu", "much"}},
		"encoded": {strings.Replace(multi(good), "\n\napi", "\nContent-Transfer-Encoding: base64\n\napi", 1),
			[]string{"part 1", "base64"}},
		"too large": {multi(good, "# "+strings.Repeat("x", 16<<10)), []string{"at most 16384"}},
		"strategy":  {multi(good + "  instance: {localStorage: {strategy: RAID5}}\n"), []string{"RAID5"}},
	} {
		_, err := boot.AL2023([]byte(row.text))
		if err == nil ||
			slices.ContainsFunc(row.says, func(s string) bool { return !strings.Contains(err.Error(), s) }) {
			t.Errorf("%s: %v, want it to say %q", name, err, row.says)
		}
	}
	if _, err := boot.AL2023([]byte(multi(good))); err != nil {
		t.Errorf("what the rows are made from: %v", err)
	}
}

// E-33: the same for Bottlerocket.
func TestWhatBottlerocketCannotRead(t *testing.T) {
	t.Parallel()
	good := fmt.Sprintf(
		"[settings.kubernetes]\ncluster-name = \"c\"\napi-server = \"https://example.com\"\ncluster-certificate = %q\n",
		base64.StdEncoding.EncodeToString([]byte(authority)))
	more := []byte(good + "registry-qps = 5\n[settings.ntp]\ntime-servers = []\n")
	if _, err := boot.Bottlerocket(more); err != nil {
		t.Errorf("settings that are right: %v", err)
	}
	for name, row := range map[string]struct{ text, says string }{
		"nothing":     {"", "settings.kubernetes is missing"},
		"no TOML":     {"a = [", "user data"},
		"other table": {good + "[kubernetes]\n", "user data"},
		"unknown":     {good + "max-pod = 3\n", "settings.kubernetes"},
		"type":        {good + "max-pods = \"3\"\n", "settings.kubernetes"},
		"no base64":   {strings.Replace(good, "LS0t", "LS0", 1), "cluster-certificate"},
		"taint":       {good + "[settings.kubernetes.node-taints]\na = [\"NoSchedule\"]\n", "VALUE:EFFECT"},
		"effect":      {good + "[settings.kubernetes.node-taints]\na = [\"b:Never\"]\n", "Never"},
		"label":       {good + "[settings.kubernetes.node-labels]\n\"k8s.io/a\" = \"b\"\n", "k8s.io/a"},
		"command":     {good + "[settings.bootstrap-commands.a]\ncommands = []\nmode = \"never\"\n", "never"},
		"too large":   {good + "# " + strings.Repeat("x", 16<<10), "at most 16384"},
	} {
		if _, err := boot.Bottlerocket([]byte(row.text)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, row.says)
		}
	}
}
