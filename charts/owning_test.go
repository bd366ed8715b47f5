package charts_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// writes returns the resources that a ClusterRole allows to change, with the names to which it is limited.
func writes(t *testing.T, rules []rbacv1.PolicyRule) (all []string) {
	t.Helper()
	for _, rule := range rules {
		changes := slices.ContainsFunc(rule.Verbs, func(verb string) bool {
			return !slices.Contains([]string{"get", "list", "watch"}, verb)
		})
		for _, resource := range rule.Resources {
			if changes && !slices.Contains(all, resource) {
				all = append(all, resource)
			}
		}
		all = append(all, rule.ResourceNames...)
	}
	return all
}

// an operator that owns less has fewer rights: it may change nothing that another operator writes.
func TestA30_RightsFollowWhatIsOwned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own       []any
		has, hasn []string
	}{
		{[]any{"Full"}, []string{"nodepools", "ec2nodeclasses", "openshiftec2nodeclasses"}, nil},
		{[]any{"Alongside"}, []string{"nodepools", "openshiftnodepools/status"},
			[]string{"ec2nodeclasses", "openshiftec2nodeclasses", "openshiftec2nodeclasses/status",
				"karpenter.ec2nodeclass.hypershift.io"}},
		{[]any{"Admission/ec2nodeclasses"}, []string{"karpenter.ec2nodeclass.hypershift.io"},
			[]string{"nodepools", "ec2nodeclasses"}},
	} {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(render(t, charts.Guest,
			map[string]any{"own": c.own})["ClusterRole/joiner-operator"], &role); err != nil {
			t.Fatal(err)
		}
		got := writes(t, role.Rules)
		for _, resource := range c.has {
			if !slices.Contains(got, resource) {
				t.Errorf("%v lacks the right to write %s, it has %q", c.own, resource, got)
			}
		}
		for _, resource := range c.hasn {
			if slices.Contains(got, resource) {
				t.Errorf("%v may write %s", c.own, resource)
			}
		}
	}
}

// chart and program mean the same parts by the same words.
func TestA30_ChartAndProgramMeanTheSame(t *testing.T) {
	t.Parallel()
	for word, parts := range map[string][]string{operator.OwnFull: charts.Full(),
		operator.OwnAlongside: charts.Alongside()} {
		owning, err := operator.NewOwning([]string{word})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range charts.Full() {
			if owning.Has(operator.Part(part)) != slices.Contains(parts, part) {
				t.Errorf("%s and %s: the program says %t", word, part, owning.Has(operator.Part(part)))
			}
		}
		want, err := charts.GuestRules(parts...)
		if err != nil {
			t.Fatal(err)
		}
		var rules []rbacv1.PolicyRule
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(want, &rules); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(render(t, charts.Guest,
			map[string]any{"own": []any{word}})["ClusterRole/joiner-operator"], &role); err != nil {
			t.Fatal(err)
		}
		if a, b := writes(t, rules), writes(t, role.Rules); !slices.Equal(a, b) || len(rules) != len(role.Rules) {
			t.Errorf("%s: the chart grants %q, GuestRules are %q", word, b, a)
		}
	}
	if _, err := charts.GuestRules("Nodes"); err == nil {
		t.Error("there are rules for a part that is none")
	}
}

// beside another operator, nothing is required, mounted or granted that only node classes need.
func TestA30_AlongsideTakesNoUserData(t *testing.T) {
	t.Parallel()
	set := map[string]any{"image": "joiner-operator:1", "own": []any{"Alongside"}, "userData.fromSecrets": true}
	documents := render(t, charts.Operator, set)
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(documents["Deployment/joiner-operator"], &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if args := strings.Join(container.Args, " "); !strings.Contains(args, "--own=Alongside") ||
		strings.Contains(args, "--userdata") {
		t.Errorf("the arguments are %s", args)
	}
	if len(container.VolumeMounts) != 1 || strings.Contains(string(documents["Role/joiner-operator"]), "secrets") {
		t.Errorf("it mounts %v, and its Role is %s", container.VolumeMounts, documents["Role/joiner-operator"])
	}
}

// the right to read HostedControlPlanes comes only with the mode, and then no flag is necessary.
func TestA32_TheModeBringsItsRight(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]bool{"Flags": false, "HostedControlPlane": true} {
		set := map[string]any{"image": "joiner-operator:1", "infraFrom": from, "userData.secret": "user-data",
			"userData.amiIDs": []any{"ami-1"}}
		if !want {
			set["aws.infraID"], set["aws.instanceProfile"] = "infra", "nodes"
		}
		documents := render(t, charts.Operator, set)
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict(documents["Role/joiner-operator"], &role); err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.Resources, []string{"hostedcontrolplanes"}) &&
				slices.Equal(rule.Verbs, []string{"list", "watch"})
		})
		deployment := string(documents["Deployment/joiner-operator"])
		if found != want || len(role.Rules) > 3 || !strings.Contains(deployment, "--infra-from="+from) ||
			strings.Contains(deployment, "--infra-id=") == want {
			t.Errorf("%s: the right is there: %t, of %d rules", from, found, len(role.Rules))
		}
	}
}
