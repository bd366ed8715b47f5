package conversion

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// badInput is a row of the tables in docs/migrating-v1beta1.md: what somebody does, and the answer.
type badInput struct {
	what   string
	answer func(r *rig, name string) string
}

const classRef = "{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}"

// writtenBadly returns what is refused when written in v1beta1.
func writtenBadly() []badInput {
	refused := func(from, to string) func(*rig, string) string {
		return func(r *rig, name string) string {
			return r.refused(strings.Replace(pool(name, "{}"), from, to, 1))
		}
	}
	class := func(from, to string) func(*rig, string) string {
		return func(r *rig, name string) string {
			return r.refused(strings.Replace(fmt.Sprintf(nodeClass, name, "AL2"), from, to, 1))
		}
	}
	return []badInput{
		{"an unknown field", refused("spec:\n", "spec:\n  strange: 1\n")},
		{"a field that only v1 has", refused("spec:\n", "spec:\n  hardLimits: {nodes: 3}\n")},
		{"a field in the wrong case", refused("{maxPods: 20}", "{MaxPods: 20}")},
		{"an unknown field, `kubectl apply --validate=false`", func(r *rig, name string) string {
			return r.must(strings.Replace(pool(name, "{}"), "spec:\n", "spec:\n  strange: 1\n", 1), "apply",
				"--validate=false", "-f", "-") +
				"v1beta1: " + r.shown("nodepools.v1beta1.karpenter.sh", name, "spec.strange") + "v1: " +
				r.shown("nodepools.v1.karpenter.sh", name, "spec.strange")
		}},
		{"`expireAfter: banana`", refused("disruption: {}", "disruption: {expireAfter: banana}")},
		{"`weight: heavy`", refused("spec:\n", "spec:\n  weight: heavy\n")},
		{"a list where an object belongs", refused("{maxPods: 20}", "[20]")},
		{"an amount such as `1e999999999`", refused("8192Mi", "1e999999999")},
		{"a nodeClassRef with a kind that is not known and no apiVersion",
			refused(classRef, "{kind: Foo, name: default}")},
		{"a nodeClassRef with a group that is not known and no kind",
			refused(classRef, "{apiVersion: a.b/v1, name: default}")},
		{"`apiVersion: v1` in a nodeClassRef",
			refused(classRef, "{apiVersion: v1, kind: EC2NodeClass, name: default}")},
		{"`consolidateAfter: 30s` with WhenUnderutilized",
			refused("disruption: {}", "disruption: {consolidateAfter: 30s}")},
		{"WhenEmpty without `consolidateAfter`",
			refused("disruption: {}", "disruption: {consolidationPolicy: WhenEmpty}")},
		{"an unknown `amiFamily`", class("AL2", "SUSE")},
		{"`amiFamily: Custom` without `amiSelectorTerms`", class("AL2", "Custom")},
		{"a changed spec of a NodeClaim", func(r *rig, name string) string {
			r.must(strings.Replace(nodeClaim, "name: claim}", "name: "+name+"}", 1), "create", "-f", "-")
			output, _ := r.kubectl("", "patch", "nodeclaims.v1beta1.karpenter.sh", name, "--type=merge", "-p",
				`{"spec":{"resources":{"requests":{"cpu":"2"}}}}`)
			return output
		}},
	}
}

// storedInput is an object stored by a CRD that let everything in. from and to change a NodePool.
type storedInput struct {
	what, from, to string
	class          bool // it is an EC2NodeClass
	fine           bool // it can be converted
}

func (s storedInput) manifest(name string) string {
	if s.class {
		return fmt.Sprintf(nodeClass, name, "SUSE")
	}
	return strings.Replace(pool(name, "{}"), s.from, s.to, 1)
}

func storedBadly() []storedInput {
	return []storedInput{
		{what: "`expireAfter: banana`", from: "disruption: {}", to: "disruption: {expireAfter: banana}"},
		{what: "`weight: heavy`", from: "spec:\n", to: "spec:\n  weight: heavy\n"},
		{what: "a number where an object belongs", from: "template:\n", to: "template: 5\n  other:\n"},
		{what: "an amount such as `1e999999999`", from: "8192Mi", to: "1e999999999"},
		{what: "a nodeClassRef with a kind that is not known and no apiVersion", from: classRef,
			to: "{kind: Foo, name: default}"},
		{what: "`apiVersion: v1` in a nodeClassRef", from: classRef,
			to: "{apiVersion: v1, kind: EC2NodeClass, name: default}"},
		{what: "a kubelet block that no annotation can hold", from: "{maxPods: 20}", to: "{clusterDNS: ['" +
			strings.Repeat("x", 256<<10) + "']}"},
		{what: "an unknown `amiFamily`", class: true},
		{what: "an unknown field", from: "spec:\n", to: "spec:\n  strange: 1\n", fine: true},
	}
}

// laxClass is oldDefinition for EC2NodeClasses.
func laxClass() string {
	return strings.NewReplacer("nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws", "group: karpenter.sh",
		"group: karpenter.k8s.aws", "NodePool", "EC2NodeClass", "plural: nodepools, singular: nodepool",
		"plural: ec2nodeclasses, singular: ec2nodeclass").Replace(oldDefinition)
}

// editedBadly returns what objects of v1 have, or what is done to them by hand. The answer is what v1beta1 shows of
// it, and the annotation in v1.
func editedBadly() []badInput {
	const prefix = "compatibility.karpenter.sh/"
	annotated := func(key, value, path string) func(*rig, string) string {
		return func(r *rig, name string) string {
			value := strings.ReplaceAll(value, "NAME", name)
			r.must(strings.Replace(poolJourney().fresh, "name: fresh", "name: "+name, 1), "create", "-f", "-")
			r.must("", "annotate", "nodepools.v1.karpenter.sh", name, prefix+key+"="+value)
			if kept := r.has(poolJourney(), "v1", name, nil); field(kept, "metadata.annotations."+prefix+
				key) != value {
				r.t.Errorf("%s: the annotation becomes %v", name, kept["metadata"])
			}
			_, report := r.joinerctl("migrate", "check")
			_, finding, _ := strings.Cut(report, "NodePool "+name+": UnreadableAnnotation")
			return r.shown("nodepools.v1beta1.karpenter.sh", name, path) + "UnreadableAnnotation" + finding
		}
	}
	beyond := func(j journey, paths ...string) func(*rig, string) string {
		return func(r *rig, name string) string {
			r.must(strings.Replace(j.fresh, "name: fresh", "name: "+name, 1), "create", "-f", "-")
			return r.shown(j.resource("v1beta1"), name, append(paths, "metadata.annotations."+prefix+"v1-fields")...)
		}
	}
	const kubelet, ref, note = "v1beta1-kubelet-conversion", "v1beta1-nodeclass-reference", "v1beta1-fields"
	return []badInput{
		{"a NodePool that uses what v1beta1 cannot say", beyond(poolJourney(), "spec.hardLimits")},
		{"an EC2NodeClass that uses what v1beta1 cannot say",
			beyond(classJourney(), "spec.kubelet", "spec.amiFamily")},
		{"a NodeClaim that uses what v1beta1 cannot say", beyond(claimJourney(), "spec.expireAfter")},
		{"a kubelet annotation that is not JSON", annotated(kubelet, "{maxPods: 10", "spec.template.spec.kubelet")},
		{"a kubelet annotation that is no kubelet block",
			annotated(kubelet, `{"maxPods":"many"}`, "spec.template.spec.kubelet")},
		{"a nodeClassRef annotation that names another class than the field",
			annotated(ref, `{"apiVersion":"karpenter.k8s.aws/v1beta1","kind":"EC2NodeClass","name":"other"}`,
				"spec.template.spec.nodeClassRef")},
		{"a fields annotation that is no JSON", annotated(note, "{", "spec.disruption.consolidationPolicy")},
		{"a fields annotation that says what the field does not say",
			annotated(note, `{"fields":[{"path":"/spec/disruption/expireAfter","was":"1h","is":"2h"}]}`,
				"spec.disruption.expireAfter")},
		{"a fields annotation with a value that the field cannot have",
			annotated(note, `{"fields":[{"path":"/spec/weight","is":"heavy"}]}`, "spec.weight")},
		{"a fields annotation that gives the object another name",
			annotated(note, `{"fields":[{"path":"/metadata/name","was":"NAME","is":"other"}]}`, "metadata.name")},
	}
}

// refused applies a manifest that must be refused, and returns the answer.
func (r *rig) refused(manifest string) string {
	r.t.Helper()
	output, err := r.kubectl(manifest, "apply", "-f", "-")
	if err == nil {
		r.t.Errorf("%s\nis not refused: %s", manifest, output)
	}
	return output
}

// shown returns what an object has at paths, a line for each.
func (r *rig) shown(resource, name string, paths ...string) string {
	r.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(r.must("", "get", resource, name, "-o", "json")), &o); err != nil {
		r.t.Fatal(err)
	}
	all := ""
	for _, path := range paths {
		all += fmt.Sprintf("%s is %s\n", path[strings.LastIndexByte(path, '.')+1:], field(o, path))
	}
	return all
}

// V-24: a real API server answers every row of the tables about bad input in docs/migrating-v1beta1.md, and no case is
// without a row. A list has all badly stored objects.
func TestBadInputIsAnsweredAsThePageSays(t *testing.T) {
	t.Parallel()
	r, manifests := start(t)
	r.must(oldDefinition+"---"+laxClass(), "apply", "-f", "-")
	r.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	stored := storedBadly()
	for i, row := range stored {
		r.must(row.manifest(fmt.Sprintf("row-%d", i)), "create", "-f", "-")
	}
	r.install(manifests)
	if listed := r.must("", "get", "nodepools.v1.karpenter.sh,ec2nodeclasses.v1.karpenter.k8s.aws", "-o",
		"name"); strings.Count(listed, "/row-") != len(stored) {
		t.Errorf("listed are\n%s", listed)
	}
	answers := map[string]map[string]string{"Written in v1beta1": {}, "Stored by a CRD that let it in": {},
		"Objects of v1": {}}
	for i, row := range stored {
		answers["Stored by a CRD that let it in"][row.what] = r.problem(row, fmt.Sprintf("row-%d", i))
	}
	for section, rows := range map[string][]badInput{"Written in v1beta1": writtenBadly(),
		"Objects of v1": editedBadly()} {
		for i, row := range rows {
			answers[section][row.what] = row.answer(r, fmt.Sprintf("%s-%d", strings.ToLower(section[:1]), i))
		}
	}
	for section, given := range answers {
		told := tableOf(t, section)
		for what, answer := range given {
			if told[what] == nil {
				t.Errorf("%s: the page does not tell of %s", section, what)
			}
			for _, quote := range told[what] {
				if !holds(answer, quote) {
					t.Errorf("%s, %s: the page says %s, the answer is\n%s", section, what, quote, answer)
				}
			}
		}
		for what := range told {
			if _, tried := given[what]; !tried {
				t.Errorf("%s: the page tells of %s, which is not tried", section, what)
			}
		}
	}
}

// problem returns why a stored object cannot be converted, or "".
func (r *rig) problem(row storedInput, name string) string {
	r.t.Helper()
	resource := "nodepools.v1.karpenter.sh"
	if row.class {
		resource = "ec2nodeclasses.v1.karpenter.k8s.aws"
	}
	problem := r.must("", "get", resource, name, "-o",
		`jsonpath={.metadata.annotations.compatibility\.karpenter\.sh/conversion-problem}`)
	if (problem == "") != row.fine {
		r.t.Errorf("%s: the problem is %q", row.what, problem)
	}
	return problem
}

// tableOf reads the table below a heading of the page: what is quoted in the last cell, by the first cell. A row
// without a quote has an empty list.
func tableOf(t *testing.T, heading string) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/migrating-v1beta1.md")
	must(t, err)
	_, below, found := strings.Cut(string(page), "\n### "+heading+"\n")
	if !found {
		t.Fatalf("the page has no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n#")
	rows := map[string][]string{}
	for line := range strings.SplitSeq(below, "\n") {
		what, answer, isRow := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if !isRow || what == "what" {
			continue
		}
		rows[what] = []string{}
		for i, part := range strings.Split(answer, "`") {
			if i%2 == 1 {
				rows[what] = append(rows[what], part)
			}
		}
	}
	return rows
}

// holds reports whether an answer has all parts of a quote in their order; … separates them.
func holds(answer, quote string) bool {
	answer = strings.Join(strings.Fields(answer), " ")
	for part := range strings.SplitSeq(quote, "…") {
		_, rest, found := strings.Cut(answer, strings.TrimSpace(part))
		if !found {
			return false
		}
		answer = rest
	}
	return true
}
