// Package settings is the table of Karpenter's settings, with the effect that each has here (K-01). It is data. The
// program reads from it which settings it accepts without effect. Tests compare it with Karpenter's own option sets
// and with our flags.
package settings

import "strings"

// Effect is what a setting of Karpenter does here.
type Effect int

const (
	// Same: the same as in Karpenter. Our flag has its name, and its default unless Ours says otherwise.
	Same Effect = iota
	// Ignored: it is accepted without effect, and reported once at the start.
	Ignored
	// OfEC2: it belongs to the EC2 provider, and has an effect if that is enabled.
	OfEC2
)

// Kind is the form of a setting's value, as Go's flags read it.
type Kind string

// The kinds of values.
const (
	Text     Kind = "string"
	Number   Kind = "int"
	Switch   Kind = "bool"
	Duration Kind = "duration"
	Decimal  Kind = "float"
)

// Origin says which of Karpenter's programs has a setting.
type Origin int

// The origins. Environment is for settings with a variable and no flag, Older for settings of releases before 1.15.
const (
	Core Origin = iota
	AWS
	KWOK
	Environment
	Older
)

// Setting is one of Karpenter's settings.
type Setting struct {
	Name    string // of the flag
	Kind    Kind
	Default string // as Go prints it
	Origin  Origin
	Effect  Effect
	// Ours is our default if it differs; "-" if ours is empty.
	Ours string
}

// Variable returns the name of the setting's environment variable.
func (s Setting) Variable() string { return strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) }

// Table returns Karpenter's settings: those of its core at release 1.15, of its AWS provider at 1.14, and of older
// ones.
func Table() []Setting {
	return []Setting{
		{Name: "karpenter-service", Kind: Text},
		{Name: "metrics-port", Kind: Number, Default: "8080"},
		{Name: "health-probe-port", Kind: Number, Default: "8081"},
		{Name: "kube-client-qps", Kind: Number, Default: "200"},
		{Name: "kube-client-burst", Kind: Number, Default: "300"},
		{Name: "enable-profiling", Kind: Switch, Default: "false"},
		{Name: "disable-controller-warmup", Kind: Switch, Default: "true", Effect: Ignored},
		{Name: "disable-leader-election", Kind: Switch, Default: "false"},
		{Name: "disable-cluster-state-observability", Kind: Switch, Default: "false"},
		{Name: "leader-election-name", Kind: Text, Default: "karpenter-leader-election"},
		{Name: "leader-election-namespace", Kind: Text},
		{Name: "memory-limit", Kind: Number, Default: "-1"},
		{Name: "cpu-requests", Kind: Number, Default: "1000", Effect: Ignored},
		{Name: "log-level", Kind: Text, Default: "info"},
		{Name: "log-output-paths", Kind: Text, Default: "stdout"},
		{Name: "log-error-output-paths", Kind: Text, Default: "stderr", Effect: Ignored},
		{Name: "batch-max-duration", Kind: Duration, Default: "10s"},
		{Name: "batch-idle-duration", Kind: Duration, Default: "1s"},
		{Name: "preference-policy", Kind: Text, Default: "Respect"},
		{Name: "min-values-policy", Kind: Text, Default: "Strict"},
		{Name: "ignore-dra-requests", Kind: Switch, Default: "true"},
		{Name: "legacy-node-repair", Kind: Switch, Default: "false", Effect: Ignored},
		{Name: "feature-gates", Kind: Text, Default: gatesText(), Ours: "-"},
		{Name: "scheduler-config", Kind: Text},

		{Name: "instance-types-file-path", Kind: Text, Origin: KWOK},

		{Name: "cluster-name", Kind: Text, Origin: AWS, Effect: OfEC2},
		{Name: "cluster-endpoint", Kind: Text, Origin: AWS, Effect: OfEC2},
		{Name: "cluster-ca-bundle", Kind: Text, Origin: AWS, Effect: OfEC2},
		{Name: "isolated-vpc", Kind: Switch, Default: "false", Origin: AWS, Effect: OfEC2},
		{Name: "eks-control-plane", Kind: Switch, Default: "false", Origin: AWS, Effect: OfEC2},
		{Name: "vm-memory-overhead-percent", Kind: Decimal, Default: "0.075", Origin: AWS, Effect: OfEC2},
		{Name: "interruption-queue", Kind: Text, Origin: AWS, Effect: OfEC2},
		{Name: "reserved-enis", Kind: Number, Default: "0", Origin: AWS, Effect: OfEC2},
		{Name: "disable-dry-run", Kind: Switch, Default: "false", Origin: AWS, Effect: OfEC2},
		{Name: "enable-zonal-shift", Kind: Switch, Default: "false", Origin: AWS, Effect: OfEC2},
		{Name: "ami-refresh-interval", Kind: Duration, Default: "1m0s", Origin: AWS, Effect: OfEC2},
		{Name: "subnet-refresh-interval", Kind: Duration, Default: "1m0s", Origin: AWS, Effect: OfEC2},
		{Name: "aws-feature-gates", Kind: Text, Origin: AWS, Effect: OfEC2},

		{Name: "system-namespace", Kind: Text, Origin: Environment, Ours: "kube-system"},
		{Name: "kubernetes-min-version", Kind: Text, Origin: Environment, Effect: Ignored},

		{Name: "disable-webhook", Kind: Switch, Origin: Older, Effect: Ignored},
		{Name: "webhook-metrics-port", Kind: Number, Origin: Older, Effect: Ignored},
		{Name: "assume-role-arn", Kind: Text, Origin: Older, Effect: Ignored},
		{Name: "assume-role-duration", Kind: Duration, Origin: Older, Effect: Ignored},
	}
}

// Find returns the setting of a flag; false when Karpenter does not have it.
func Find(flag string) (Setting, bool) {
	for _, s := range Table() {
		if s.Name == flag {
			return s, true
		}
	}
	return Setting{}, false
}
