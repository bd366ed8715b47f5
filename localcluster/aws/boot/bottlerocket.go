package boot

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
)

// kubernetesSettings are the parts of settings.kubernetes that matter here. otherSettings has the names of the rest.
type kubernetesSettings struct {
	Name           string              `toml:"cluster-name"`
	Endpoint       string              `toml:"api-server"`
	CA             string              `toml:"cluster-certificate"`
	DNS            any                 `toml:"cluster-dns-ip"` // a text or a list of them
	Labels         map[string]string   `toml:"node-labels"`
	Taints         map[string][]string `toml:"node-taints"`
	MaxPods        int32               `toml:"max-pods"`
	KubeReserved   map[string]string   `toml:"kube-reserved"`
	SystemReserved map[string]string   `toml:"system-reserved"`
	EvictionHard   map[string]string   `toml:"eviction-hard"`
}

// otherSettings returns the other names below settings.kubernetes that Bottlerocket 1.50 knows.
func otherSettings() []string {
	return strings.Fields(`allowed-unsafe-sysctls authentication-mode bootstrap-token cloud-provider cluster-domain
		container-log-max-files container-log-max-size container-log-max-workers container-log-monitor-interval
		cpu-cfs-quota-enforced cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period credential-providers
		device-ownership-from-security-context event-burst event-qps eviction-max-pod-grace-period eviction-soft
		eviction-soft-grace-period hostname-override hostname-override-source ids-per-pod image-gc-high-threshold-percent
		image-gc-low-threshold-percent kube-api-burst kube-api-qps log-level memory-manager-policy
		memory-manager-reserved-memory node-ip nvidia pod-infra-container-image pod-pids-limit provider-id registry-burst
		registry-qps reserved-cpus seccomp-default server-certificate server-key server-tls-bootstrap shutdown-grace-period
		shutdown-grace-period-for-critical-pods single-process-oom-kill standalone-mode static-pods topology-manager-policy
		topology-manager-scope`)
}

// Bottlerocket reads user data like Bottlerocket: settings in TOML. It refuses unknown names below
// settings.kubernetes.
func Bottlerocket(data []byte) (Config, error) {
	if len(data) > maxSize {
		return Config{}, fmt.Errorf("the user data has %d bytes; at most %d are allowed", len(data), maxSize)
	}
	var all struct {
		Settings map[string]any `toml:"settings"`
	}
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&all); err != nil {
		return Config{}, fmt.Errorf("the user data: %w", err)
	}
	kubernetes, isTable := all.Settings["kubernetes"].(map[string]any)
	if !isTable {
		return Config{}, fmt.Errorf("settings.kubernetes is missing")
	}
	disks, err := mountsDisks(all.Settings)
	if err != nil {
		return Config{}, err
	}
	known := otherSettings()
	maps.DeleteFunc(kubernetes, func(key string, _ any) bool { return slices.Contains(known, key) })
	text, err := toml.Marshal(kubernetes)
	if err != nil {
		return Config{}, fmt.Errorf("settings.kubernetes: %w", err)
	}
	var settings kubernetesSettings
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&settings); err != nil {
		return Config{}, fmt.Errorf("settings.kubernetes: %w", err)
	}
	c, err := settings.config()
	c.Disks = disks
	return c, err
}

func (s *kubernetesSettings) config() (Config, error) {
	c := Config{
		Cluster: Cluster{Name: s.Name, Endpoint: s.Endpoint}, Labels: s.Labels, MaxPods: s.MaxPods,
		KubeReserved: s.KubeReserved, SystemReserved: s.SystemReserved, EvictionHard: s.EvictionHard,
	}
	var err error
	if c.Cluster.CA, err = base64.StdEncoding.DecodeString(s.CA); err != nil {
		return c, fmt.Errorf("settings.kubernetes.cluster-certificate is no base64: %w", err)
	}
	switch dns := s.DNS.(type) {
	case string:
		c.DNS = []string{dns}
	case []any:
		for _, address := range dns {
			c.DNS = append(c.DNS, fmt.Sprint(address))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Taints)) {
		for _, text := range s.Taints[key] {
			value, effect, has := strings.Cut(text, ":")
			if !has {
				return c, fmt.Errorf("settings.kubernetes.node-taints: %s is %q; VALUE:EFFECT is allowed", key, text)
			}
			c.Taints = append(c.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return c, c.check()
}

// mountsDisks reports whether a bootstrap command makes a volume from the instance's disks.
func mountsDisks(settings map[string]any) (bool, error) {
	text, err := toml.Marshal(map[string]any{"commands": settings["bootstrap-commands"]})
	if settings["bootstrap-commands"] == nil || err != nil {
		return false, err
	}
	var all struct {
		Commands map[string]struct {
			Commands  [][]string `toml:"commands"`
			Mode      string     `toml:"mode"`
			Essential bool       `toml:"essential"`
		} `toml:"commands"`
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&all); err != nil {
		return false, fmt.Errorf("settings.bootstrap-commands: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all.Commands)) {
		of := all.Commands[name]
		if !slices.Contains([]string{"always", "once", "off"}, of.Mode) {
			return false, fmt.Errorf("settings.bootstrap-commands.%s.mode is %q; always, once or off is allowed", name,
				of.Mode)
		}
		for _, words := range of.Commands {
			if of.Mode != "off" && slices.Equal(words, []string{"apiclient", "ephemeral-storage", "init"}) {
				return true, nil
			}
		}
	}
	return false, nil
}
