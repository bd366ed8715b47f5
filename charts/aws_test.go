package charts_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/plug"
)

// E-59: every setting of the provider for EC2 has a value in the chart. The program accepts what the chart passes,
// with the default values and with others. Without a cluster's name nothing is passed.
func TestTheChartPassesTheSettingsOfAWS(t *testing.T) {
	t.Parallel()
	containerOf := func(set map[string]any) (corev1.Container, map[string][]byte) {
		documents := render(t, charts.Joiner, set)
		var deployment appsv1.Deployment
		if err := yaml.UnmarshalStrict(documents["Deployment/joiner"], &deployment); err != nil {
			t.Fatal(err)
		}
		return deployment.Spec.Template.Spec.Containers[0], documents
	}
	flags := func() (*plug.Plug, *pflag.FlagSet) {
		p, set := plug.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
		p.Flags(set)
		return p, set
	}
	given := map[string]any{"image": "joiner:1"}
	bare, _ := containerOf(given)
	_, all := flags()
	all.VisitAll(func(f *pflag.Flag) {
		for _, arg := range bare.Args {
			if strings.HasPrefix(arg, "--"+f.Name+"=") {
				t.Errorf("without a cluster's name the chart passes %s", arg)
			}
		}
	})
	given["aws.clusterName"], given["aws.region"] = "prod", "eu-west-1"
	given["serviceAccount.annotations"] = map[string]any{
		"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/joiner",
	}
	given["env"] = []any{map[string]any{"name": "AWS_ENDPOINT_URL", "value": "http://localhost:4566"}}
	container, documents := containerOf(given)
	own, known := flags()
	var theirs []string
	for _, arg := range container.Args {
		if name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "="); known.Lookup(name) != nil {
			theirs = append(theirs, arg)
		}
	}
	if err := known.Parse(theirs); err != nil {
		t.Fatal(err)
	}
	if err := own.Load(); err != nil || own.Lacks() != "" {
		t.Errorf("the chart passes %q: lacks %q, error %v", theirs, own.Lacks(), err)
	}
	known.VisitAll(func(f *pflag.Flag) {
		if !f.Changed && f.Name != "enable-zonal-shift" && f.Name != "aws-feature-gates" { // which must be off
			t.Errorf("the chart has no value for --%s", f.Name)
		}
		if f.Changed && f.Value.String() != f.DefValue && f.Name != "cluster-name" {
			t.Errorf("the chart's default of --%s is %s, the program's %s", f.Name, f.Value, f.DefValue)
		}
	})
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
	}
	if env["AWS_REGION"] != "eu-west-1" || env["AWS_ENDPOINT_URL"] != "http://localhost:4566" {
		t.Errorf("environment %v", env)
	}
	var account corev1.ServiceAccount
	if err := yaml.UnmarshalStrict(documents["ServiceAccount/joiner"], &account); err != nil ||
		account.Annotations["eks.amazonaws.com/role-arn"] != "arn:aws:iam::123456789012:role/joiner" {
		t.Errorf("annotations of the service account %v, error %v", account.Annotations, err)
	}
}
