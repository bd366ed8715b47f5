package userdata_test

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// nodeConfig is what nodeadm reads, by its API reference.
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority []byte `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
		Kubelet struct {
			Config map[string]any `json:"config"`
			Flags  []string       `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// read is a reader of multipart documents that knows nothing of the writer: it returns media types and bodies.
func read(t *testing.T, text string) (kinds, bodies []string) {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatalf("%s, %v: want multipart/mixed", kind, err)
	}
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return kinds, bodies
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		kinds, bodies = append(kinds, kind), append(bodies, string(body))
	}
}

func last(t *testing.T, text string) nodeConfig {
	t.Helper()
	kinds, bodies := read(t, text)
	if kinds[len(kinds)-1] != "application/node.eks.aws" {
		t.Fatalf("the last part is %s", kinds[len(kinds)-1])
	}
	var config nodeConfig
	if err := yaml.UnmarshalStrict([]byte(bodies[len(bodies)-1]), &config); err != nil {
		t.Fatalf("%v in\n%s", err, bodies[len(bodies)-1])
	}
	return config
}

// node is a node with something in every field.
func node() userdata.Node {
	return userdata.Node{
		Cluster: userdata.Cluster{Name: "prod", Endpoint: "https://prod.example.com", CA: "Y2E=",
			CIDR: "10.100.0.0/16"},
		Kubelet: &awsv1.KubeletConfiguration{
			MaxPods: new(int32(500)), KubeReserved: map[string]string{"cpu": "100m"}, EvictionHard: map[string]string{
				"memory.available": "5%",
			},
			ImageGCHighThresholdPercent: new(int32(85)), CPUCFSQuota: new(true),
		},
		MaxPods: 58, DNS: []string{"10.100.0.10"},
		Labels: map[string]string{"team": "web", "karpenter.sh/nodepool": "default"}, Taints: []corev1.Taint{
			{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule},
			{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
		},
		LocalStorage: true,
	}
}

// E-32, E-34: the node joins its cluster with the plan's number of pods, labels and taints, and with the class's
// settings.
func TestAL2023SaysAllThatTheNodeNeeds(t *testing.T) {
	t.Parallel()
	text, err := userdata.AL2023("", node())
	if err != nil {
		t.Fatal(err)
	}
	config := last(t, text)
	cluster := config.Spec.Cluster
	if config.APIVersion != "node.eks.aws/v1alpha1" || cluster.Name != "prod" ||
		cluster.APIServerEndpoint != "https://prod.example.com" ||
		string(cluster.CertificateAuthority) != "ca" || cluster.CIDR != "10.100.0.0/16" {
		t.Errorf("the cluster is %+v", cluster)
	}
	kubelet := config.Spec.Kubelet.Config
	if kubelet["maxPods"] != float64(58) || kubelet["imageGCHighThresholdPercent"] != float64(85) ||
		kubelet["cpuCFSQuota"] != true {
		t.Errorf("the kubelet's settings are %v", kubelet)
	}
	if dns, _ := kubelet["clusterDNS"].([]any); len(dns) != 1 || dns[0] != "10.100.0.10" {
		t.Errorf("clusterDNS is %v", kubelet["clusterDNS"])
	}
	taints, _ := kubelet["registerWithTaints"].([]any)
	if len(taints) != 2 || taints[0].(map[string]any)["value"] != "web" ||
		taints[1].(map[string]any)["effect"] != "NoExecute" {
		t.Errorf("registerWithTaints is %v", taints)
	}
	if flags := config.Spec.Kubelet.Flags; !slices.Equal(flags,
		[]string{"--node-labels=karpenter.sh/nodepool=default,team=web"}) {
		t.Errorf("flags are %q", flags)
	}
	if config.Spec.Instance.LocalStorage.Strategy != "RAID0" {
		t.Errorf("the disks of the instance are not used: %+v", config.Spec.Instance)
	}
}

// E-32: the user's part comes first, unchanged, and ours wins since it comes last.
func TestAL2023KeepsTheUsersParts(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 7\n"
	const script = "#!/bin/bash\necho \"hello\"\n"
	const several = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\n" +
		"Content-Type: text/x-shellscript; charset=\"us-ascii\"\n\n" +
		script + "\n--B\nContent-Type: application/node.eks.aws\n\n---\n" + config +
		"--B\nContent-Type: text/cloud-config\n\npackages: [jq]\n\n--B--\n"
	for name, row := range map[string]struct {
		user  string
		kinds []string
		holds []string
	}{
		"nothing":    {"", []string{"application/node.eks.aws"}, nil},
		"script":     {script, []string{"text/x-shellscript", "application/node.eks.aws"}, []string{script}},
		"NodeConfig": {config, []string{"application/node.eks.aws", "application/node.eks.aws"}, []string{config}},
		"multipart": {
			several, []string{"text/x-shellscript", "application/node.eks.aws", "text/cloud-config",
				"application/node.eks.aws"},
			[]string{script, "---\n" + config, "packages: [jq]\n"},
		},
		"our boundary in a script": {"#!/bin/bash\ncat <<END\n--JOINER\nEND\n",
			[]string{"text/x-shellscript", "application/node.eks.aws"}, []string{"--JOINER"}},
	} {
		text, err := userdata.AL2023(row.user, node())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kinds, bodies := read(t, text)
		if !slices.Equal(kinds, row.kinds) {
			t.Errorf("%s: parts %q, want %q", name, kinds, row.kinds)
		}
		for i, want := range row.holds {
			if !strings.Contains(bodies[i], want) {
				t.Errorf("%s: part %d is\n%s\nwant it to hold\n%s", name, i+1, bodies[i], want)
			}
		}
		if got := last(t, text).Spec.Kubelet.Config["maxPods"]; got != float64(58) {
			t.Errorf("%s: maxPods is %v in the last part", name, got)
		}
	}
}

// E-75: invalid input is named by part and line, and never quoted: it may contain secrets.
func TestAL2023NamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ user, want string }{
		"prose": {"token hunter2", "spec.userData: it is no multipart document"},
		"yaml": {
			"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {hunter2\n", "spec.userData, line",
		},
		"second document": {
			"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n---\nkind: hunter2\n",
			"spec.userData, line 4: its kind is not NodeConfig",
		},
		"no boundary": {"MIME-Version: 1.0\nContent-Type: text/plain\n\nhunter2",
			"its Content-Type is not multipart/mixed with a boundary"},
		"cut": {
			"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/plain\n\nhunter2",
			"part 1: the boundary after it is missing",
		},
		"empty": {"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B--\n", "without parts"},
		"part": {
			"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\n" +
				"Content-Type: application/node.eks.aws\n\nkind: Pod\n\n--B--\n",
			"spec.userData, part 1, line 1: its kind is not NodeConfig",
		},
	} {
		_, err := userdata.AL2023(row.user, node())
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want it to say %q", name, err, row.want)
		}
	}
}

// E-34: user data that EC2 would refuse as too large is refused before, with both sizes.
func TestTooMuchUserDataIsRefused(t *testing.T) {
	t.Parallel()
	script := "#!/bin/bash\n" + strings.Repeat("# filling\n", 2000)
	var large *userdata.TooLargeError
	if _, err := userdata.AL2023(script, node()); !errors.As(err, &large) || large.Size < len(script) ||
		!strings.Contains(err.Error(), "at most 16384") {
		t.Errorf("error %v", err)
	}
	if _, err := userdata.Bottlerocket(strings.Repeat("# filling\n", 2000), node(), ""); err != nil {
		t.Errorf("comments are not written again: %v", err)
	}
}

// E-34: equal input gives equal bytes, whatever the order of maps.
func TestEqualInputGivesEqualBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := node()
		n.Labels = rapid.MapOf(rapid.StringMatching(`[a-z]{1,5}`), rapid.StringMatching(`[a-z]{0,3}`)).Draw(t,
			"labels")
		n.Kubelet.SystemReserved = rapid.MapOf(rapid.SampledFrom([]string{"cpu", "memory", "pid"}),
			rapid.StringMatching(`[0-9]{1,3}m`)).Draw(t, "reserved")
		first, err := userdata.AL2023("", n)
		again, _ := userdata.AL2023("", n)
		if err != nil || first != again {
			t.Fatalf("%v, or it differs", err)
		}
		first, err = userdata.Bottlerocket("", n, "")
		again, _ = userdata.Bottlerocket("", n, "")
		if err != nil || first != again {
			t.Fatalf("%v, or it differs", err)
		}
	})
}

// no user data causes a panic, and no error quotes it.
func FuzzUserData(f *testing.F) {
	f.Add("#!/bin/bash\n")
	f.Add("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\n\nx\n--B--")
	f.Add("[settings.kubernetes]\nmax-pods = 3\n")
	f.Add("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n")
	f.Fuzz(func(t *testing.T, user string) {
		for _, write := range []func() (string, error){
			func() (string, error) { return userdata.AL2023(user, node()) },
			func() (string, error) { return userdata.Bottlerocket(user, node(), "") },
		} {
			text, err := write()
			var unread *userdata.Error
			var large *userdata.TooLargeError
			if err != nil && !errors.As(err, &unread) && !errors.As(err, &large) {
				t.Errorf("error of another kind: %v", err)
			}
			if len(text) > userdata.Limit {
				t.Errorf("%d bytes", len(text))
			}
		}
	})
}
