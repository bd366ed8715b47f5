package doors

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/openapi/openapitest"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// automatic is one MutatingAdmissionPolicy of the chart with its binding, compiled as kube-apiserver does.
type automatic struct {
	policy   registrationv1.MutatingAdmissionPolicy
	selector labels.Selector
	matcher  matchconditions.Matcher
	patcher  patch.Patcher
	types    managedfields.TypeConverter
}

// podTypes are the types of Kubernetes, as the API server's merge wants them.
func podTypes(t *testing.T) managedfields.TypeConverter {
	t.Helper()
	manager := patch.NewTypeConverterManager(nil, openapitest.NewEmbeddedFileClient())
	go manager.Run(t.Context())
	var types managedfields.TypeConverter
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, false,
		func(context.Context) (bool, error) {
			types = manager.GetTypeConverter(corev1.SchemeGroupVersion.WithKind("Pod"))
			return types != nil, nil
		}); err != nil {
		t.Fatal(err)
	}
	return types
}

// automaticPolicies returns the chart's policies for the configuration of a world.
func automaticPolicies(w *schedulingtest.World, types managedfields.TypeConverter) ([]automatic, error) {
	content, err := json.Marshal(w.Sources.Config)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := json.Unmarshal(content, &values); err != nil {
		return nil, err
	}
	text, err := charts.AutomaticPolicies("joiner-webhook", values)
	if err != nil {
		return nil, err
	}
	var all []automatic
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, document)
		}
		switch head.Kind {
		case "MutatingAdmissionPolicy":
			next := automatic{types: types}
			if err := yaml.UnmarshalStrict([]byte(document), &next.policy); err != nil {
				return nil, fmt.Errorf("%w\n%s", err, document)
			}
			if err := next.compile(); err != nil {
				return nil, err
			}
			all = append(all, next)
		case "MutatingAdmissionPolicyBinding":
			var binding registrationv1.MutatingAdmissionPolicyBinding
			if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
				return nil, fmt.Errorf("%w\n%s", err, document)
			}
			last := &all[len(all)-1]
			if binding.Spec.PolicyName != last.policy.Name ||
				*binding.Spec.ParamRef.ParameterNotFoundAction != registrationv1.AllowAction {
				return nil, fmt.Errorf("the binding of %s is %+v", last.policy.Name, binding.Spec)
			}
			if last.selector, err = metav1.LabelSelectorAsSelector(binding.Spec.ParamRef.Selector); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (a *automatic) compile() error {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return err
	}
	declared := cel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}
	var conditions []cel.ExpressionAccessor
	for i := range a.policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&a.policy.Spec.MatchConditions[i]))
	}
	fail := registrationv1.Fail // an expression that fails shows
	a.matcher = matchconditions.NewMatcher(compiler.CompileCondition(conditions, declared,
		environment.StoredExpressions), &fail, "policy", "mutate", a.policy.Name)
	declared.HasPatchTypes = true
	applies := a.policy.Spec.Mutations[0].ApplyConfiguration.Expression
	compiled := compiler.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: applies},
		declared, environment.StoredExpressions)
	if errs := compiled.CompilationErrors(); len(errs) > 0 {
		return fmt.Errorf("%s: %v", a.policy.Name, errs)
	}
	a.patcher = patch.NewApplyConfigurationPatcher(compiled)
	return nil
}

// admit applies a policy to a pod, once for each node that its binding selects.
func (a *automatic) admit(w *schedulingtest.World, asked schedulingtest.Asked) (schedulingtest.Asked, error) {
	if slices.Contains(a.policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values, asked.Namespace) {
		return asked, nil
	}
	for _, node := range slices.SortedFunc(w.All(), func(x, y *corev1.Node) int {
		return strings.Compare(x.Name,
			y.Name)
	}) {
		if !a.selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		internal, err := server.Record(asked)
		if err != nil {
			return asked, err
		}
		object, _ := asked.Objects()
		versioned := &admission.VersionedAttributes{Attributes: internal, VersionedObject: object,
			VersionedKind: internal.GetKind()}
		matched := a.matcher.Match(context.Background(), versioned, node, nil)
		if matched.Error != nil || !matched.Matches {
			if matched.Error != nil {
				return asked, matched.Error
			}
			continue
		}
		patched, err := a.patcher.Patch(context.Background(), patch.Request{MatchedResource: internal.GetResource(),
			VersionedAttributes: versioned,
			ObjectInterfaces:    server.Interfaces,
			OptionalVariables:   cel.OptionalVariableBindings{VersionedParams: node}, TypeConverter: a.types},
			celconfig.RuntimeCELCostBudget)
		if err != nil {
			return asked, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
		if err != nil {
			return asked, err
		}
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, pod); err != nil {
			return asked, err
		}
		asked.Object = pod
	}
	return asked, nil
}

// automaticEntries are the entries of the worlds below: people in every spelling, accounts, namespaces.
var automaticEntries = []string{"system:admin", "user:a/b", "a/b/c", "group:oncall", "ops/default", "namespace:web",
	"namespace:app@" + schedulingtest.NamespaceUID,
	"system:serviceaccount:tmp:default", "system:kube-scheduler", "user:system:serviceaccount:tmp:bot",
	"é\"\\\n<ENTRIES>"}

// guarded is a configuration with the chart's policies for it. Compiling takes most of the time, so there are few.
type guarded struct {
	world    []string // lines
	entries  [][]string
	policies []automatic
	// byExpression: a pod that selects the group's label aims at it, and the policies do not see that.
	byExpression bool
}

// configurations returns the configurations of the worlds below.
func configurations(t *testing.T) []guarded {
	t.Helper()
	types := podTypes(t)
	var all []guarded
	for i := range automaticEntries {
		some := func(from int) []string {
			return []string{automaticEntries[(from+i)%len(automaticEntries)],
				automaticEntries[(3*from+i+1)%len(automaticEntries)], "group:admins"}
		}
		g := guarded{world: []string{"override Automatic", "group ControlPlane select=cp= mode=Enable"},
			entries: [][]string{some(0)}}
		if i%2 == 1 {
			g.world, g.entries = append(g.world, "group Gpu select=gpu=a mode=Enable"), append(g.entries, some(1))
		}
		if i%4 == 3 {
			g.world[1], g.byExpression = "group ControlPlane select=cp mode=Enable", true
		}
		w := g.begin(t.Fatal)
		var err error
		if g.policies, err = automaticPolicies(w, types); err != nil || len(g.policies) != len(g.entries) {
			t.Fatalf("%d policies for %v (%v)", len(g.policies), g.entries, err)
		}
		all = append(all, g)
	}
	return all
}

// begin returns a world with the configuration, and without nodes.
func (g guarded) begin(fail func(...any)) *schedulingtest.World {
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, strings.Join(g.world, "\n"), nil); err != nil {
		fail(err)
	}
	for i := range w.Sources.Config.Groups {
		w.Sources.Config.Groups[i].AuthorizedUsers = g.entries[i]
	}
	return w
}

// admit applies the policies to a pod that is created.
func (g guarded) admit(t *rapid.T, w *schedulingtest.World, asked schedulingtest.Asked) schedulingtest.Asked {
	for i := range g.policies {
		var err error
		if asked, err = g.policies[i].admit(w, asked); err != nil {
			t.Fatal(err)
		}
	}
	return asked
}

// debugging draws nodes for a configuration, and requests that create pods. Free ones may have anything.
func debugging(t *rapid.T, g guarded, free bool) (*schedulingtest.World, []string) {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	w := g.begin(t.Fatal)
	var lines []string
	for i, labels := range []string{"cp,os=linux", "cp,gpu=a", "gpu=a", "os=linux"} {
		lines = append(lines, fmt.Sprintf("node n%d labels=%s taints=%s", i, labels, pick("taints", "cp:NoSchedule",
			"cp=v:NoExecute",
			"cp:NoSchedule,gpu=x:NoSchedule", "node.kubernetes.io/not-ready:NoSchedule", "")))
	}
	if free {
		lines = append(lines, "node late taints=cp:NoSchedule", "live-node secret labels=cp")
		for i := range w.Sources.Config.Groups {
			if pick("taint", "", "yes") != "" {
				w.Sources.Config.Groups[i].Taints = []v1alpha1.GroupTaint{{Key: "cp",
					Effect: corev1.TaintEffectNoSchedule}}
			}
		}
	}
	if _, err := w.Run("cluster", false, strings.Join(lines, "\n"), nil); err != nil {
		t.Fatal(err)
	}
	var requests []string
	for range 10 {
		words := []string{pick("node", "", "node=n0", "node=n2", "node=n3", "node=none"), pick("tolerates", "",
			"tolerate=*", "tolerate=cp:NoSchedule tolerate=gpu", "tolerate=cp=v"),
			pick("selects", "", "select=cp=", "select=os=linux", "select=gpu=a", "select=os=linux select=cp="),
			pick("owner", "", "", "owner=ReplicaSet/web"),
			pick("override", "", "", "override=why")}
		users := []string{"system:admin", "dora[admins]", "dora[oncall]", "alice", "a/b", "sa:tmp/bot",
			"sa:ops/default", "group:admins", "system:kube-scheduler"}
		if free {
			users = append(users, "a/b/c") // whose entry need not begin with user:
			words = append(words, pick("needs", "", "need=cp", "need=name=n0"), pick("more", "", "node=late",
				"node=secret", "tolerate=cp>5", "mirror"))
		}
		requests = append(requests, fmt.Sprintf("%s create pod %s/web %s", pick("user", users...), pick("namespace",
			"tmp", "ops", "web", "app"), strings.Join(words, " ")))
	}
	return w, requests
}

// where the configuration says all, the chart's policies for the webhook write what the plugin writes. Whatever
// else a pod or a cluster has, they write nothing that the plugin would not write.
func TestA42_TheMutatingPolicyWritesWhatThePluginWrites(t *testing.T) {
	t.Parallel()
	configurations := configurations(t)
	for name, free := range map[string]bool{"the same": false, "no more": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written, asks := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				g := rapid.SampledFrom(configurations).Filter(func(g guarded) bool {
					return free ||
						!g.byExpression
				}).Draw(t, "configuration")
				w, requests := debugging(t, g, free)
				for _, line := range requests {
					asked, err := schedulingtest.ParseRequest(line)
					if err != nil {
						t.Fatal(err)
					}
					plugin, err := w.Admit(asked)
					if err != nil {
						t.Fatal(err)
					}
					policy := g.admit(t, w, asked)
					asks++
					want, got := plugin.Object.GetAnnotations(), policy.Object.GetAnnotations()
					if maps.Equal(want, got) {
						written += len(got) - len(asked.Object.GetAnnotations())
						continue
					}
					if !free || len(got) > len(asked.Object.GetAnnotations()) {
						t.Fatalf("%s: the plugin writes %v, the policy %v", line, want, got)
					}
				}
			})
			if written == 0 || written == asks {
				t.Errorf("%d of %d pods got the annotation", written, asks)
			}
		})
	}
}

// where the policies know less than the webhook, a pod is refused in the same words as without them, and never
// for an annotation that they wrote. They do not know the entries and modes of Scheduler.
func TestA42_AMutatingPolicyHarmsNoPod(t *testing.T) {
	t.Parallel()
	configurations := configurations(t)
	hook := newConfigured(t)
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom(configurations).Draw(t, "configuration")
		w, requests := debugging(t, g, true)
		w.Sources.Scheduler = &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: configv1.SchedulerName},
			Spec: configv1.SchedulerSpec{
				SchedulingGroups: []configv1.SchedulingGroup{{Name: configv1.ControlPlane,
					Mode: rapid.SampledFrom([]configv1.GroupMode{"", configv1.Disable,
						configv1.Inform, configv1.Enable}).Draw(t, "mode"), AuthorizedUsers: []string{"alice",
						"tmp/default"}}}}}
		for _, line := range requests {
			asked, err := schedulingtest.ParseRequest(line)
			if err != nil {
				t.Fatal(err)
			}
			changed := g.admit(t, w, asked)
			before, err := hook.ask(w, asked)
			if err != nil {
				t.Fatal(err)
			}
			after, err := hook.ask(w, changed)
			if err != nil {
				t.Fatal(err)
			}
			misused := strings.Contains(after.Message, string(evaluator.OverrideMisused)) &&
				len(asked.Object.GetAnnotations()) == 0
			if before.Allowed && !after.Allowed || !before.Allowed && !after.Allowed &&
				before.Message != after.Message || misused {
				t.Fatalf("%s: first %s\n%safter the policies %s\n%s", line, before, before.Text(), after, after.Text())
			}
		}
	})
}

// with the longest lists that Scheduler may have, and a user in many groups, an expression costs no more than
// kube-apiserver allows.
func TestA42_LongListsFit(t *testing.T) {
	t.Parallel()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false,
		"override Automatic\ngroup ControlPlane select=cp= mode=Enable\nnode n0 labels=cp", nil); err != nil {
		t.Fatal(err)
	}
	var entries, groups []string
	for i := range 1000 {
		entries = append(entries, fmt.Sprintf("namespace:openshift-somewhere-%04d@%s", i, schedulingtest.NamespaceUID))
	}
	for i := range 100 {
		groups = append(groups, fmt.Sprintf("group-of-the-company-%d", i))
	}
	w.Sources.Config.Groups[0].AuthorizedUsers = append(entries, "group:oncall")
	policies, err := automaticPolicies(w, podTypes(t))
	if err != nil {
		t.Fatal(err)
	}
	asked, err := schedulingtest.ParseRequest("dora create pod tmp/debug node=n0")
	if err != nil {
		t.Fatal(err)
	}
	asked.User.Groups = append(groups, "oncall")
	if asked, err = policies[0].admit(w, asked); err != nil || len(asked.Object.GetAnnotations()) != 1 {
		t.Errorf("the pod has %v (%v)", asked.Object.GetAnnotations(), err)
	}
}
