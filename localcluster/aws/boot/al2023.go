package boot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// mediaType is the type of the parts that nodeadm reads. It leaves all others to cloud-init.
const mediaType = "application/node.eks.aws"

// nodeConfig is nodeadm's NodeConfig, with every field of its reference.
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Spec       nodeConfigSpec `json:"spec"`
}

type nodeConfigSpec struct {
	Cluster struct {
		Name     string `json:"name"`
		Endpoint string `json:"apiServerEndpoint"`
		CA       []byte `json:"certificateAuthority"`
		CIDR     string `json:"cidr"`
		Outpost  *bool  `json:"enableOutpost"`
		ID       string `json:"id"`
	} `json:"cluster"`
	Containerd struct {
		Config  string         `json:"config"`
		Runtime map[string]any `json:"baseRuntimeSpec"`
	} `json:"containerd"`
	Instance struct {
		LocalStorage struct {
			Strategy string   `json:"strategy"`
			Path     string   `json:"mountPath"`
			Disabled []string `json:"disabledMounts"`
		} `json:"localStorage"`
	} `json:"instance"`
	Kubelet struct {
		Config map[string]any `json:"config"`
		Flags  []string       `json:"flags"`
	} `json:"kubelet"`
	Gates map[string]bool `json:"featureGates"`
}

// AL2023 reads user data like nodeadm: the NodeConfigs of a multipart document one after the other, or a single one.
// Later values win, but flags of the kubelet are appended. Errors name the part, counted from 1, and what is wrong
// there.
func AL2023(data []byte) (Config, error) {
	if len(data) > maxSize {
		return Config{}, fmt.Errorf("the user data has %d bytes; at most %d are allowed", len(data), maxSize)
	}
	texts, err := nodeConfigs(data)
	if err != nil {
		return Config{}, err
	}
	var merged nodeConfigSpec
	for _, text := range texts {
		if err := text.addTo(&merged); err != nil {
			return Config{}, fmt.Errorf("%s: %w", text.where, err)
		}
	}
	return merged.config()
}

// document is a NodeConfig and its place.
type document struct {
	where string
	text  []byte
}

func nodeConfigs(data []byte) ([]document, error) {
	message, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil || message.Header.Get("Content-Type") == "" {
		if !bytes.Contains(data, []byte("node.eks.aws/")) {
			return nil, errors.New("the user data is no multipart document and no NodeConfig")
		}
		return split("the user data", data)
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("the document's Content-Type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") || message.Header.Get("MIME-Version") == "" {
		return nil, fmt.Errorf("the user data is %s; multipart/mixed with a MIME-Version is allowed", kind)
	}
	var found []document
	parts := multipart.NewReader(message.Body, parameters["boundary"])
	for number := 1; ; number++ {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", number, err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", number, err)
		}
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			return nil, fmt.Errorf("part %d: its Content-Type: %w", number, err)
		}
		if kind != mediaType {
			continue
		}
		if encoding := part.Header.Get("Content-Transfer-Encoding"); encoding != "" && encoding != "7bit" &&
			encoding != "8bit" {
			return nil, fmt.Errorf("part %d: its transfer encoding is %q; none is allowed for a NodeConfig", number,
				encoding)
		}
		documents, err := split(fmt.Sprintf("part %d", number), body)
		if err != nil {
			return nil, err
		}
		found = append(found, documents...)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the document has no part of type %s", mediaType)
	}
	return found, nil
}

// split splits a text into its YAML documents.
func split(where string, text []byte) ([]document, error) {
	var all []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if len(bytes.TrimSpace(one)) > 0 {
			all = append(all, document{where, one})
		}
	}
}

// addTo merges a NodeConfig over earlier ones: fields that it does not have stay.
func (d document) addTo(merged *nodeConfigSpec) error {
	var alone nodeConfig
	if err := yaml.UnmarshalStrict(d.text, &alone); err != nil {
		return err
	}
	if alone.APIVersion != "node.eks.aws/v1alpha1" || alone.Kind != "NodeConfig" {
		return fmt.Errorf("it is %s of %s; NodeConfig of node.eks.aws/v1alpha1 is allowed", alone.Kind,
			alone.APIVersion)
	}
	flags, config := merged.Kubelet.Flags, merged.Kubelet.Config
	merged.Kubelet.Flags, merged.Kubelet.Config = nil, nil
	over := nodeConfig{Spec: *merged}
	if err := yaml.UnmarshalStrict(d.text, &over); err != nil {
		return err
	}
	*merged = over.Spec
	merged.Kubelet.Flags = append(flags, alone.Spec.Kubelet.Flags...)
	merged.Kubelet.Config = deepen(config, alone.Spec.Kubelet.Config)
	return nil
}

// deepen merges maps recursively; other later values win.
func deepen(earlier, later map[string]any) map[string]any {
	all := maps.Clone(earlier)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range later {
		below, isMap := value.(map[string]any)
		before, wasMap := all[key].(map[string]any)
		if isMap && wasMap {
			value = deepen(before, below)
		}
		all[key] = value
	}
	return all
}

// config returns the configuration with which nodeadm starts the kubelet.
func (s *nodeConfigSpec) config() (Config, error) {
	c := Config{
		Cluster: Cluster{Name: s.Cluster.Name, Endpoint: s.Cluster.Endpoint, CA: s.Cluster.CA, CIDR: s.Cluster.CIDR},
		Labels:  map[string]string{},
	}
	text, err := json.Marshal(s.Kubelet.Config)
	if err != nil {
		return c, fmt.Errorf("kubelet.config: %w", err)
	}
	var kubelet kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &kubelet); err != nil {
		return c, fmt.Errorf("kubelet.config: %w", err)
	}
	c.Taints, c.MaxPods, c.DNS = kubelet.RegisterWithTaints, kubelet.MaxPods, kubelet.ClusterDNS
	c.KubeReserved, c.SystemReserved, c.EvictionHard = kubelet.KubeReserved, kubelet.SystemReserved,
		kubelet.EvictionHard
	for _, flag := range s.Kubelet.Flags {
		name, value, _ := strings.Cut(flag, "=")
		if !strings.HasPrefix(name, "--") {
			return c, fmt.Errorf("kubelet.flags: %q; --NAME=VALUE is allowed", flag)
		}
		if name != "--node-labels" {
			continue
		}
		labels, err := pairs(strings.Trim(value, `"'`))
		if err != nil {
			return c, fmt.Errorf("kubelet.flags: %w", err)
		}
		maps.Copy(c.Labels, labels)
	}
	switch strategy := s.Instance.LocalStorage.Strategy; strategy {
	case "":
	case "RAID0", "RAID10", "Mount":
		c.Disks = strategy != "Mount"
	default:
		return c, fmt.Errorf("instance.localStorage.strategy is %q; RAID0, RAID10 or Mount is allowed", strategy)
	}
	if s.Cluster.CIDR == "" {
		return c, errors.Join(errors.New("cluster.cidr is missing: the kubelet would have no address of the DNS"),
			c.check())
	}
	return c, c.check()
}
