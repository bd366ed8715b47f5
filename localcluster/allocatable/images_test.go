package allocatable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// settings is a kubelet's configuration, as JSON reads it.
type settings = map[string]any

// nodeadm returns what nodes of AL2023 give their kubelet: nodeadm's own configuration, and the user data's as a
// drop-in. The drop-in wins key by key.
func nodeadm(t *testing.T, info *ec2types.InstanceTypeInfo, node userdata.Node) settings {
	t.Helper()
	text, err := userdata.AL2023("", node)
	if err != nil {
		t.Fatal(err)
	}
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	merged := settings{
		"evictionHard": settings{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"},
		"kubeReserved": usuallyReserved(info, addressed(info)),
	}
	for parts := multipart.NewReader(message.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return merged
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Spec struct{ Kubelet struct{ Config settings } }
		}
		if err := yaml.Unmarshal(body, &config); err != nil {
			t.Fatal(err)
		}
		strictly(t, config.Spec.Kubelet.Config)
		merge(merged, config.Spec.Kubelet.Config)
	}
}

// merge merges JSON objects; the later one wins.
func merge(into, from settings) {
	for key, value := range from {
		if below, both := into[key].(settings); both {
			if object, isObject := value.(settings); isObject {
				merge(below, object)
				continue
			}
		}
		into[key] = value
	}
}

// bottlerocket returns what nodes of Bottlerocket give their kubelet: the settings, and reservations of its own by
// max-pods. If the settings state thresholds, there are no others.
func bottlerocket(t *testing.T, info *ec2types.InstanceTypeInfo, node userdata.Node) settings {
	t.Helper()
	text, err := userdata.Bottlerocket("", node, "")
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Settings struct {
			Kubernetes struct {
				MaxPods                 int64             `toml:"max-pods"`
				KubeReserved            map[string]string `toml:"kube-reserved"`
				SystemReserved          map[string]string `toml:"system-reserved"`
				EvictionHard            map[string]string `toml:"eviction-hard"`
				EvictionSoft            map[string]string `toml:"eviction-soft"`
				EvictionSoftGracePeriod map[string]string `toml:"eviction-soft-grace-period"`
			}
		}
	}
	if err := toml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	k := read.Settings.Kubernetes
	reserved := usuallyReserved(info, k.MaxPods)
	for key, value := range k.KubeReserved {
		reserved[key] = value
	}
	config := settings{"maxPods": k.MaxPods, "kubeReserved": reserved}
	for key, value := range map[string]map[string]string{
		"systemReserved": k.SystemReserved, "evictionHard": k.EvictionHard, "evictionSoft": k.EvictionSoft,
		"evictionSoftGracePeriod": k.EvictionSoftGracePeriod,
	} {
		if len(value) > 0 {
			config[key] = value
		}
	}
	return config
}

// usuallyReserved returns what images reserve for the kubelet by themselves, in their own arithmetic: hundredths of a
// percent of the millicores of each range, and MiB by pods.
func usuallyReserved(info *ec2types.InstanceTypeInfo, pods int64) settings {
	all, reserved := int64(*info.VCpuInfo.DefaultVCpus)*1000, int64(0)
	from := int64(0)
	for _, band := range []struct{ until, share int64 }{{1000, 600}, {2000, 100}, {4000, 50}, {all, 25}} {
		if until := min(band.until, all); until > from {
			reserved += (until - from) * band.share / 10_000
			from = until
		}
	}
	return settings{"cpu": fmt.Sprintf("%dm", reserved), "memory": fmt.Sprintf("%dMi", 255+11*pods),
		"ephemeral-storage": "1Gi"}
}

// addressed returns how many pods nodeadm assumes when it reserves memory, whatever the class says.
func addressed(info *ec2types.InstanceTypeInfo) int64 {
	card := info.NetworkInfo.NetworkCards[*info.NetworkInfo.DefaultNetworkCardIndex]
	return int64(*card.MaximumNetworkInterfaces)*int64(*info.NetworkInfo.Ipv4AddressesPerInterface-1) + 2
}

// written returns settings as a document of the kubelet's configuration.
func written(t *testing.T, s settings) []byte {
	t.Helper()
	whole := maps.Clone(s)
	whole["apiVersion"], whole["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
