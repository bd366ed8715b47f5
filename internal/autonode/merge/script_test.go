package merge_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// TestScripts runs every script below testdata/scripts; docs/scripts.md has their language. Rewrite them with
// `go test ./internal/autonode/merge -run TestScripts -rewrite`; the diff is the review.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, run)
	})
}

func run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "nodepool":
		s := parse(t, d)
		return s.nodePool()
	case "check":
		s := parse(t, d)
		return problems("valid", policy.Check(*merge.Policy(s.policy)))
	case "nodeclass":
		return nodeClass(t, d)
	case "ready":
		return ready(t, d)
	case "admission":
		return admission(t, d)
	}
	d.Fatalf(t, "unknown verb %q; want nodepool, check, nodeclass, ready or admission", d.Cmd)
	return ""
}

// script is what the lines of nodepool and check describe.
type script struct {
	policy   *hypershiftv1beta1.AutoNodePolicy // nil when no line is about it
	pool     *hypershiftv1beta1.OpenshiftNodePool
	settings merge.NodePoolSettings
}

func parse(t *testing.T, d *datadriven.TestData) script {
	t.Helper()
	s := script{pool: &hypershiftv1beta1.OpenshiftNodePool{}}
	s.pool.Name = "mine"
	template := &s.pool.Spec.Template
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "policy":
			if s.policy == nil {
				s.policy = &hypershiftv1beta1.AutoNodePolicy{}
			}
			if len(words) > 1 {
				into := &s.policy.Spec.NodePoolDefaults.Requirements
				*into = append(*into, entries(t, d, words[1:])...)
			}
		case words[0] == "pool" && len(words) > 1:
			template.Spec.Requirements = append(template.Spec.Requirements, entries(t, d, words[1:])...)
		case words[0] == "root":
			if s.policy == nil {
				s.policy = &hypershiftv1beta1.AutoNodePolicy{}
			}
			s.policy.Spec.EC2NodeClassDefaults.RootVolume = rootVolume(t, d, words[1:])
		case words[0] == "label" && len(words) == 2:
			key, value, _ := strings.Cut(words[1], "=")
			if template.ObjectMeta.Labels == nil {
				template.ObjectMeta.Labels = map[string]string{}
			}
			template.ObjectMeta.Labels[long(key)] = value
		case words[0] == "class" && len(words) == 4:
			template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: words[1], Kind: words[2],
				Name: words[3]}
		case words[0] == "allow" && len(words) == 3:
			s.settings.NodeClasses = append(s.settings.NodeClasses, schema.GroupKind{Group: words[1], Kind: words[2]})
		default:
			d.Fatalf(t, "line %q: want policy, pool, root, label, class or allow", line)
		}
	}
	return s
}

// short are names of labels in scripts.
var short = []struct{ short, long string }{
	{"type", corev1.LabelInstanceTypeStable}, {"zone", corev1.LabelTopologyZone}, {"arch", corev1.LabelArchStable},
	{"capacity", karpenterv1.CapacityTypeLabelKey}, {"gpus", "karpenter.k8s.aws/instance-gpu-count"},
}

func long(key string) string {
	for _, name := range short {
		if name.short == key {
			return name.long
		}
	}
	return key
}

func shorten(text string) string {
	for _, name := range short {
		text = strings.ReplaceAll(text, name.long, name.short)
	}
	return text
}

// entries reads "key operator values min=n", where key may be "x0..9" for ten entries, and values "a,b" or "m0..9".
func entries(t *testing.T, d *datadriven.TestData, words []string) []merge.Requirement {
	t.Helper()
	if len(words) < 2 {
		d.Fatalf(t, "%v: want a key and an operator", words)
	}
	var list []merge.Requirement
	for _, key := range numbered(words[0]) {
		entry := merge.Requirement{Key: long(key), Operator: corev1.NodeSelectorOperator(words[1])}
		for _, word := range words[2:] {
			if number, isMin := strings.CutPrefix(word, "min="); isMin {
				entry.MinValues = new(atoi(t, d, number))
				continue
			}
			for _, value := range strings.Split(word, ",") {
				entry.Values = append(entry.Values, numbered(value)...)
			}
		}
		list = append(list, entry)
	}
	return list
}

// numbered expands "x0..9" to ten names; anything else stands for itself.
func numbered(text string) []string {
	first, last, isRange := strings.Cut(text, "..")
	digits := strings.LastIndexFunc(first, func(r rune) bool { return r < '0' || r > '9' }) + 1
	from, err := strconv.Atoi(first[digits:])
	to, err2 := strconv.Atoi(last)
	if !isRange || err != nil || err2 != nil {
		return []string{text}
	}
	var list []string
	for i := from; i <= to; i++ {
		list = append(list, first[:digits]+strconv.Itoa(i))
	}
	return list
}

func rootVolume(t *testing.T, d *datadriven.TestData, words []string) *hypershiftv1beta1.RootVolume {
	t.Helper()
	volume := &hypershiftv1beta1.RootVolume{}
	for _, word := range words {
		field, value, _ := strings.Cut(word, "=")
		switch field {
		case "size":
			volume.VolumeSize = new(resource.MustParse(value))
		case "type":
			volume.VolumeType = &value
		case "encrypted":
			volume.Encrypted = new(value == "true")
		case "iops":
			volume.IOPS = new(int64(atoi(t, d, value)))
		case "throughput":
			volume.Throughput = new(int64(atoi(t, d, value)))
		default:
			d.Fatalf(t, "root %q: want size, type, encrypted, iops or throughput", word)
		}
	}
	return volume
}

func atoi(t *testing.T, d *datadriven.TestData, text string) int {
	t.Helper()
	number, err := strconv.Atoi(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return number
}

// nodePool prints each written entry and whose it is, what is left for each label, and the wrapper's condition.
func (s script) nodePool() string {
	result := merge.NodePool(s.policy, s.pool, s.settings)
	public, said := s.byThePublicPackage()
	if own := result.Compatible(); own.Reason != said.Reason || own.Message != said.Message ||
		string(own.Status) != string(said.Status) {
		return fmt.Sprintf("package policy says %+v, the conversion %+v\n", said, own)
	}
	if result.NodePool != nil && !reflect.DeepEqual(merge.FromAPI(result.NodePool.Spec.Template.Spec.Requirements),
		public.Requirements) {
		return fmt.Sprintf("package policy writes %+v\n", public.Requirements)
	}
	var b strings.Builder
	if result.NodePool == nil {
		b.WriteString(problems("nothing is wrong, and nothing written", result.Problems))
	} else {
		spec := result.NodePool.Spec.Template.Spec
		if s.pool.Spec.Template.Spec.NodeClassRef != nil {
			fmt.Fprintf(&b, "class  %s %s %s\n", spec.NodeClassRef.Group, spec.NodeClassRef.Kind,
				spec.NodeClassRef.Name)
		}
		s.list(&b, spec.Requirements, result.Closed)
		left := result.Folded.Without(karpenterv1.NodePoolLabelKey)
		left = left.Without("karpenter.k8s.aws/ec2nodeclass").Without("karpenter.kwok.sh/kwoknodeclass")
		if left.Len() > 20 {
			fmt.Fprintf(&b, "left   something for each of %d labels\n", left.Len()-len(left.EmptyKeys()))
		} else {
			fmt.Fprintf(&b, "left   %s\n", left)
		}
	}
	fmt.Fprintln(&b, text(result.Compatible()))
	return shorten(b.String())
}

// byThePublicPackage is the same by what others call.
func (s script) byThePublicPackage() (policy.Merged, policy.Condition) {
	template := s.pool.Spec.Template
	var kinds []policy.NodeClassKind
	for _, kind := range s.settings.NodeClasses {
		kinds = append(kinds, policy.NodeClassKind{Group: kind.Group, Kind: kind.Kind})
	}
	var ref *policy.NodeClass
	if r := template.Spec.NodeClassRef; r != nil {
		ref = &policy.NodeClass{Group: r.Group, Kind: r.Kind, Name: r.Name}
	}
	class, problem := policy.ResolveNodeClass(ref, kinds...)
	merged := policy.MergeRequirements(merge.Policy(s.policy), policy.Pool{
		Name: s.pool.Name, NodeClass: class, Labels: template.ObjectMeta.Labels,
		Requirements: merge.FromAPI(template.Spec.Requirements),
	}, s.settings.Vocabulary)
	if problem != nil && len(policy.Invalid(merge.Policy(s.policy))) == 0 {
		merged = policy.Merged{Problems: []policy.Problem{*problem}}
	}
	return merged, merged.Compatible()
}

// list prints entries; long lists by their ends only.
func (s script) list(b *strings.Builder, list []merge.Requirement, closed bool) {
	provided := 0
	if s.policy != nil {
		provided = len(s.policy.Spec.NodePoolDefaults.Requirements)
	}
	for i, entry := range list {
		owner := "pool  "
		switch {
		case i < provided:
			owner = "policy"
		case closed && i == len(list)-1:
			owner = "closed"
		}
		if len(list) > 20 && i >= 2 && i < len(list)-2 {
			if i == 2 {
				fmt.Fprintf(b, "... %d entries\n", len(list)-4)
			}
			continue
		}
		words := []string{owner, entry.Key, string(entry.Operator)}
		if n := len(entry.Values); n > 20 {
			words = append(words, fmt.Sprintf("%s..%s", entry.Values[0], entry.Values[n-1]))
		} else if n > 0 {
			words = append(words, strings.Join(entry.Values, ","))
		}
		if entry.MinValues != nil {
			words = append(words, fmt.Sprintf("min=%d", *entry.MinValues))
		}
		fmt.Fprintln(b, strings.Join(words, " "))
	}
}

func text(c condition.Value) string {
	return strings.TrimSpace(fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
}

func problems(none string, list []merge.Problem) string {
	if len(list) == 0 {
		return none + "\n"
	}
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s %s\n", p.Reason, p)
	}
	return shorten(b.String())
}

// ready reads lines "pool NAME STATE..." and "class NAME STATE...": applied, failed=REASON, unknown, old (another
// generation), other (another policy), new (nothing said yet), deleting, conflict. Policy lines are those of check.
func ready(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	policy := &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: metav1.ObjectMeta{UID: "this", Generation: 7}}
	var targets []merge.Target
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "policy":
			into := &policy.Spec.NodePoolDefaults.Requirements
			*into = append(*into, entries(t, d, words[1:])...)
		case len(words) > 2 && words[0] == "pool":
			for _, name := range numbered(words[1]) {
				pool := &hypershiftv1beta1.OpenshiftNodePool{}
				pool.Name = name
				describeTarget(t, d, words[2:], &pool.ObjectMeta, &pool.Status.Conditions, &pool.Status.ObservedPolicy)
				targets = append(targets, merge.PoolTarget(pool))
			}
		case len(words) > 2 && words[0] == "class":
			class := &hypershiftv1.OpenshiftEC2NodeClass{}
			class.Name = words[1]
			describeTarget(t, d, words[2:], &class.ObjectMeta, &class.Status.Conditions, &class.Status.ObservedPolicy)
			targets = append(targets, merge.EC2NodeClassTarget(class))
		default:
			d.Fatalf(t, "line %q: want policy, pool or class", line)
		}
	}
	slices.Reverse(targets) // the order does not matter
	return shorten(text(merge.Ready(policy, targets))) + "\n"
}

func describeTarget(t *testing.T, d *datadriven.TestData, words []string, meta *metav1.ObjectMeta,
	conditions *[]karpenterv1.Condition, observed **hypershiftv1.ObservedPolicy) {
	t.Helper()
	*observed = &hypershiftv1.ObservedPolicy{UID: "this", Generation: 7}
	add := func(kind string, status metav1.ConditionStatus, reason string) {
		*conditions = append(*conditions, karpenterv1.Condition{Type: kind, Status: status, Reason: reason})
	}
	for _, word := range words {
		name, reason, _ := strings.Cut(word, "=")
		switch name {
		case "applied":
			add(hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue, "Applied")
		case "failed":
			add(hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionFalse, reason)
		case "unknown":
			add(hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionUnknown, "UserDataMissing")
		case "old":
			(*observed).Generation--
		case "other":
			(*observed).UID = "other"
		case "new":
			*observed = nil
		case "deleting":
			meta.DeletionTimestamp = new(metav1.Unix(1, 0))
		case "conflict":
			add(hypershiftv1beta1.ConditionTypeRequirementsCompatible, metav1.ConditionFalse,
				"NoCompatibleInstanceTypes")
		default:
			d.Fatalf(t, "unknown state %q", word)
		}
	}
}
