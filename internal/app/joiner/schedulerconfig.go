package joiner

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/onedocument"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// schedulerConfig is Karpenter's document about the configuration of kube-scheduler.
type schedulerConfig struct {
	PodTopologySpread *struct {
		DefaultConstraints []any `json:"defaultConstraints"`
	} `json:"podTopologySpread"`
}

// spreadOf reads Karpenter's --scheduler-config, and returns its content in the form of --default-spread-constraints.
func spreadOf(document, own string) (string, error) {
	if strings.TrimSpace(document) == "" {
		return own, nil
	}
	if err := onedocument.Check([]byte(document)); err != nil {
		return "", fmt.Errorf("--scheduler-config: %w", err)
	}
	var object map[string]any // a single word or a file name is YAML too
	if yaml.Unmarshal([]byte(document), &object) != nil && !strings.Contains(document, ":") {
		return "", fmt.Errorf("--scheduler-config: want a document with podTopologySpread.defaultConstraints, got %s",
			strings.Join(strings.Fields(document), " "))
	}
	var config schedulerConfig
	if err := yaml.UnmarshalStrict([]byte(document), &config); err != nil {
		return "", fmt.Errorf("--scheduler-config: want a document with podTopologySpread.defaultConstraints: %s",
			strings.Join(strings.Fields(err.Error()), " "))
	}
	if own != translate.DefaultSpreadNone && own != "" {
		return "",
			errors.New("--scheduler-config and --default-spread-constraints are both given: give one of the two")
	}
	if config.PodTopologySpread == nil || len(config.PodTopologySpread.DefaultConstraints) == 0 {
		return own, nil
	}
	list, err := yaml.Marshal(config.PodTopologySpread.DefaultConstraints)
	if err != nil {
		return "", fmt.Errorf("--scheduler-config: %w", err)
	}
	text, err := yaml.YAMLToJSON(list)
	if err != nil {
		return "", fmt.Errorf("--scheduler-config: %w", err)
	}
	if _, err := translate.ParseDefaultSpread(string(text)); err != nil {
		return "", fmt.Errorf("--scheduler-config: podTopologySpread.defaultConstraints%s",
			strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return string(text), nil
}
