package takeover

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/nearest"
	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// Given is what a program was started with: its command line and its environment.
type Given struct {
	// Where says for people where the settings were found; "" when nothing is known.
	Where string
	Args  []string
	Env   map[string]string
	// Elsewhere names the variables whose values are in other objects, which were not read.
	Elsewhere []string
	// Account is the service account of the program, as namespace:name; "" when it is not known.
	Account string
}

// Known reports whether anything is known of the settings.
func (g Given) Known() bool { return g.Where != "" }

// FromDeployment reads the settings of a Deployment's program: from its container called controller, or else from the
// first. It fails if there is no container.
func FromDeployment(d *appsv1.Deployment) (Given, error) {
	where := fmt.Sprintf("Deployment %s/%s", d.Namespace, d.Name)
	pod := d.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return Given{}, fmt.Errorf("%s has no container", where)
	}
	at := max(0, slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "controller" }))
	c := pod.Containers[at]
	g := Given{Where: where, Args: slices.Concat(c.Command, c.Args), Env: map[string]string{},
		Account: d.Namespace + ":" + pod.ServiceAccountName}
	for _, env := range c.Env {
		if env.ValueFrom != nil {
			if env.ValueFrom.ResourceFieldRef == nil && env.ValueFrom.FieldRef == nil {
				g.Elsewhere = append(g.Elsewhere, env.Name)
			}
			continue
		}
		g.Env[env.Name] = env.Value
	}
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			g.Elsewhere = append(g.Elsewhere, "all of ConfigMap "+from.ConfigMapRef.Name)
		case from.SecretRef != nil:
			g.Elsewhere = append(g.Elsewhere, "all of Secret "+from.SecretRef.Name)
		}
	}
	return g, nil
}

// FromValues reads a values file of Karpenter's chart or of ours. chart has the keys that ours accepts, each with
// those above it, such as controller and controller.env. refused are the keys of the file that ours does not accept,
// in order.
func FromValues(where string, values map[string]any, chart []string) (g Given, refused []string) {
	g = Given{Where: where, Env: map[string]string{}}
	byName := map[string]settings.Setting{}
	for _, s := range settings.Table() {
		byName[strings.ReplaceAll(s.Name, "-", "")] = s
	}
	put := func(key string, value any) {
		if s, known := byName[strings.ToLower(key)]; known {
			g.Env[s.Variable()] = textOf(value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		put(key, values[key])
	}
	refused = unknown(values, "", chart)
	inner, _ := values["settings"].(map[string]any)
	for key, value := range inner {
		if gates, is := value.(map[string]any); is && (key == "featureGates" || key == "awsFeatureGates") {
			value = gatesOf(gates)
		}
		put(key, value)
	}
	if veto, given := inner["repairVeto"]; given { // only our chart has it
		g.Env["REPAIR_VETO"] = textOf(veto)
	}
	if compat, _ := values["compat"].(map[string]any); compat["karpenter"] == true { // as the chart does (K-23)
		g.Args = append(g.Args, "--"+unknownFlags+"="+warnOfUnknown)
		if gates, _ := settings.Find(settings.FeatureGates); g.Env[gates.Variable()] == "" {
			g.Env[gates.Variable()] = gates.Default
		}
	}
	controller, _ := values["controller"].(map[string]any)
	for _, list := range []any{controller["env"], values["env"]} { // the later one wins, as in the chart
		entries, _ := list.([]any)
		for _, entry := range entries {
			variable, _ := entry.(map[string]any)
			name, _ := variable["name"].(string)
			delete(g.Env, name)
			if value, plain := variable["value"]; plain {
				g.Env[name] = textOf(value)
			} else if name != "" {
				g.Elsewhere = append(g.Elsewhere, name)
			}
		}
	}
	if from, _ := controller["envFrom"].([]any); len(from) > 0 {
		g.Elsewhere = append(g.Elsewhere, "controller.envFrom")
	}
	args, _ := values["extraArgs"].([]any)
	for _, arg := range args {
		g.Args = append(g.Args, fmt.Sprint(arg))
	}
	return g, refused
}

// unknown returns the paths of a values file that a chart does not accept. Keys below one that the chart accepts as a
// whole are the user's.
func unknown(values map[string]any, above string, chart []string) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := above + key
		inner, isMap := values[key].(map[string]any)
		switch {
		case !slices.Contains(chart, path):
			paths = append(paths, path)
		case isMap &&
			slices.ContainsFunc(chart, func(known string) bool { return strings.HasPrefix(known, path+".") }):
			paths = append(paths, unknown(inner, path+".", chart)...)
		}
	}
	return paths
}

// textOf returns the text that the chart makes from a value: "" from null, which is like a value that is not given.
func textOf(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case []any:
		var parts []string
		for _, part := range value {
			parts = append(parts, textOf(part))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(value)
}

// gatesOf turns values such as spotToSpotConsolidation: true into the text that the charts make from them. Our chart
// leaves out gates without a value: named so, they would have Karpenter's default, and all others too.
func gatesOf(gates map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(gates)) {
		if value := textOf(gates[key]); key != "" && value != "" {
			parts = append(parts, strings.ToUpper(key[:1])+key[1:]+"="+value)
		}
	}
	return strings.Join(parts, ",")
}

// pair is a flag of a command line with its value; a flag without a value is a switch.
type pair struct {
	name, value string
	valued      bool
}

// flags parses a command line: words that begin with one dash or two, and the value after = or in the next word.
func (g Given) flags() (list []pair) {
	for i := 0; i < len(g.Args); i++ {
		text, dashed := strings.CutPrefix(g.Args[i], "-")
		if !dashed {
			continue
		}
		text = strings.TrimPrefix(text, "-")
		name, value, valued := strings.Cut(text, "=")
		s, known := settings.Find(name)
		if !valued && known && s.Kind != settings.Switch && i+1 < len(g.Args) {
			i++
			value, valued = g.Args[i], true
		}
		list = append(list, pair{name, value, valued})
	}
	return list
}

// value returns the value given for a setting: by its flag, of which the last one counts, or else by its variable.
func (g Given) value(name string) (string, bool) {
	for _, f := range slices.Backward(g.flags()) {
		if f.name == name {
			if !f.valued {
				return "true", true
			}
			return f.value, true
		}
	}
	s, _ := settings.Find(name)
	value, given := g.Env[s.Variable()]
	return value, given && value != ""
}

// flagOrVariable is value for a setting that Karpenter does not have.
func (g Given) flagOrVariable(flag, variable string) (string, bool) {
	for i, arg := range slices.Backward(g.Args) {
		name, value, valued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case name != flag || !strings.HasPrefix(arg, "-"):
		case valued:
			return value, true
		case i+1 < len(g.Args):
			return g.Args[i+1], true
		}
	}
	value, given := g.Env[variable]
	return value, given && value != ""
}

// on reports whether a switch was given as true.
func (g Given) on(name string) bool {
	value, _ := g.value(name)
	is, err := strconv.ParseBool(value)
	return err == nil && is
}

// reads returns what is wrong with the value of a setting; "" for nothing.
func reads(kind settings.Kind, value string) string {
	var err error
	switch kind {
	case settings.Number:
		_, err = strconv.Atoi(value)
	case settings.Switch:
		_, err = strconv.ParseBool(value)
	case settings.Duration:
		_, err = time.ParseDuration(value)
	case settings.Decimal:
		_, err = strconv.ParseFloat(value, 64)
	case settings.Text:
	}
	if err != nil {
		return fmt.Sprintf("it is no %s", kind)
	}
	return ""
}

// The flag that says what becomes of unknown flags, and its value with which Joiner starts in spite of them.
const (
	unknownFlags  = "unknown-flags"
	warnOfUnknown = "warn"
)

// ownFlags are Joiner's flags that Karpenter does not have, a name on each line. A test compares it with the sources.
//
//go:embed flags.txt
var ownFlags string

// OwnFlags returns the names of Joiner's flags that Karpenter does not have, sorted.
func OwnFlags() []string { return strings.Fields(ownFlags) }

// likeFlag suggests the flag of Karpenter, or of more, whose name is closest to an unknown one.
func likeFlag(name string, more []string) string {
	names := slices.Clone(more)
	for _, s := range settings.Table() {
		names = append(names, s.Name)
	}
	return nearest.Ask(name, names)
}
