package evaluator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

const (
	// maxGroups bounds metrics and audit annotations, which name groups.
	maxGroups = 32
	// maxEntry is the length limit of a list entry, in bytes. No authenticator returns names as long.
	maxEntry = 1024
)

// Decode reads the configuration, as YAML or JSON, and checks it (N1, N2). The error names each wrong field, its value
// and what is allowed. A door without any configuration has no policy, and does not call Decode (N4).
func Decode(document []byte) (*v1alpha1.NodeSchedulingPolicyConfig, error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return nil, fmt.Errorf("%s: the document is empty", v1alpha1.Kind)
	}
	if bytes.Contains(bytes.TrimPrefix(bytes.TrimSpace(document), []byte("---")), []byte("\n---")) {
		return nil, fmt.Errorf("%s: more than one document: give one", v1alpha1.Kind)
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v1alpha1.Kind, err)
	}
	config := &v1alpha1.NodeSchedulingPolicyConfig{}
	strict, err := kjson.UnmarshalStrict(asJSON, config)
	if err = errors.Join(append(strict, describe(err))...); err != nil {
		return nil, fmt.Errorf("%s: %w", v1alpha1.Kind, err)
	}
	if err := checkKind(config.TypeMeta); err != nil {
		return nil, fmt.Errorf("%s: %w", v1alpha1.Kind, err)
	}
	if err := Check(config); err != nil {
		return nil, fmt.Errorf("%s: %w", v1alpha1.Kind, err)
	}
	return config, nil
}

// describe turns an error about a value of the wrong type into the words of the file, instead of Go's.
func describe(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field, want := cmp.Or(wrong.Field, "the document"), "an object"
	switch wrong.Type.Kind() {
	case reflect.String:
		want = "a text"
	case reflect.Slice:
		want = "a list"
	}
	return fmt.Errorf("%s is of type %s: it must be %s", field, wrong.Value, want)
}

func checkKind(meta metav1.TypeMeta) error {
	const version, alias = v1alpha1.Group + "/" + v1alpha1.Version, v1alpha1.Group + "/" + v1alpha1.VersionAlias
	var errs []error
	if meta.APIVersion != version && meta.APIVersion != alias {
		errs = append(errs, fmt.Errorf("apiVersion is %q: it must be %s", meta.APIVersion, version))
	}
	if meta.Kind != v1alpha1.Kind {
		errs = append(errs, fmt.Errorf("kind is %q: it must be %s", meta.Kind, v1alpha1.Kind))
	}
	return errors.Join(errs...)
}

// Check checks the fields of a configuration (N2), except apiVersion and kind, which Decode checks. The error names
// each wrong field, its value and what is allowed.
func Check(config *v1alpha1.NodeSchedulingPolicyConfig) error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...)))
	}
	if config.Groups == nil {
		wrong("groups", "is missing: it must be a list, which may be empty")
	}
	if len(config.Groups) > maxGroups {
		wrong("groups", "has %d entries: at most %d are allowed", len(config.Groups), maxGroups)
	}
	seen := map[configv1.GroupName]int{}
	for i, group := range config.Groups {
		path := fmt.Sprintf("groups[%d]", i)
		switch name := string(group.Name); {
		case name == "":
			wrong(path+".name", "is missing: it must be a name such as %s", configv1.ControlPlane)
		case len(validation.IsValidLabelValue(name)) > 0:
			wrong(path+".name",
				"is %q: it must have at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last",
				name)
		}
		if first, found := seen[group.Name]; found && group.Name != "" {
			wrong(path+".name", "is %q, as is that of groups[%d]: names must differ", group.Name, first)
		} else {
			seen[group.Name] = i
		}
		errs = append(errs, checkGroup(path, group, config.EntryPins == v1alpha1.PinsRequire)...)
	}
	switch config.Authorization {
	case "", v1alpha1.Lists, v1alpha1.ListsAndRBAC:
	default:
		wrong("authorization", "is %q: it must be %s or %s, or be left out, which is %[2]s", config.Authorization,
			v1alpha1.Lists, v1alpha1.ListsAndRBAC)
	}
	switch config.EmergencyOverride {
	case "", v1alpha1.OverrideDisable, v1alpha1.OverrideEnable, v1alpha1.OverrideAutomatic:
	default:
		wrong("emergencyOverride", "is %q: it must be %s, %s or %s, or be left out, which is %[2]s",
			config.EmergencyOverride,
			v1alpha1.OverrideDisable, v1alpha1.OverrideEnable, v1alpha1.OverrideAutomatic)
	}
	switch config.EntryPins {
	case "", v1alpha1.PinsWarn, v1alpha1.PinsRequire:
	default:
		wrong("entryPins", "is %q: it must be %s or %s, or be left out, which is %[2]s", config.EntryPins,
			v1alpha1.PinsWarn, v1alpha1.PinsRequire)
	}
	return errors.Join(errs...)
}

func checkGroup(path string, group v1alpha1.SchedulingPolicyGroup, pins bool) []error {
	var errs []error
	selector, err := metav1.LabelSelectorAsSelector(&group.LabelSelector)
	if err != nil {
		errs = append(errs, fmt.Errorf("%s.labelSelector: %w", path, err))
	} else if selector.Empty() {
		errs = append(errs,
			fmt.Errorf(
				"%s.labelSelector is missing or empty, which would be every node: it must have matchLabels or matchExpressions",
				path))
	}
	for i, taint := range group.Taints {
		errs = append(errs, checkTaint(fmt.Sprintf("%s.taints[%d]", path, i), taint)...)
	}
	if !slices.Contains([]configv1.GroupMode{"", configv1.Disable, configv1.Enable, configv1.Inform}, group.Mode) {
		errs = append(errs, fmt.Errorf("%s.mode is %q: it must be %s, %s or %s, or be empty, which is %[3]s", path,
			group.Mode, configv1.Disable, configv1.Enable, configv1.Inform))
	}
	if group.AuthorizedUsers == nil {
		errs = append(errs, fmt.Errorf("%s.authorizedUsers is missing: it must be a list, which may be empty", path))
	}
	for i, text := range group.AuthorizedUsers {
		if _, err := readEntry(text, pins); err != nil {
			errs = append(errs, fmt.Errorf("%s.authorizedUsers[%d] is %q: %w", path, i, shorten(text), err))
		}
	}
	return errs
}

// checkTaint refuses taints that state a condition: they would make a node a member of the group while it is not
// ready.
func checkTaint(path string, taint v1alpha1.GroupTaint) []error {
	var errs []error
	switch {
	case strings.HasPrefix(taint.Key, conditionTaints):
		errs = append(errs,
			fmt.Errorf("%s.key is %q, the condition of a node: it must be a key that nodes of the group have for good",
				path, shorten(taint.Key)))
	case len(validation.IsQualifiedName(taint.Key)) > 0:
		errs = append(errs,
			fmt.Errorf("%s.key is %q: it must be the key of a taint, such as node-role.kubernetes.io/control-plane",
				path, shorten(taint.Key)))
	}
	if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, fmt.Errorf("%s.effect is %q: it must be %s or %s", path, shorten(string(taint.Effect)),
			corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute))
	}
	return errs
}

// shorten bounds a text that users choose, so that it does not fill a message.
func shorten(text string) string {
	const most = 253 // the longest name of an object
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
