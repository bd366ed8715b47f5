package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// mostPaths bounds the lists in messages.
const mostPaths = 10

// pick is an image for some types.
type pick struct {
	image
	requirements []corev1.NodeSelectorRequirement
}

func (p pick) ami(now time.Time) awsv1.AMI {
	return awsv1.AMI{ID: p.id, Name: p.name, Deprecated: p.deprecated(now), Requirements: p.requirements}
}

// images collects the images of a class's terms.
type images struct {
	*Resolver
	kubernetes string
	now        time.Time
	basis      basis
	picks      []pick
	problems   []string // of terms without an image
}

// judgeImages decides the images of a class and their condition.
func (r *Resolver) judgeImages(class *awsv1.EC2NodeClass, kubernetes string, into *Result, now time.Time) {
	if text := unsupported(&class.Spec, kubernetes); text != "" {
		into.Status.AMIs = nil
		into.add(unmet(AMIsReady, AMIFamilyUnsupported, "spec.amiFamily or the alias in spec.amiSelectorTerms: "+text),
			newBasis(), now)
		return
	}
	g := images{Resolver: r, kubernetes: kubernetes, now: now, basis: newBasis()}
	for i, term := range class.Spec.AMISelectorTerms {
		before := len(g.picks)
		problem := g.term(term)
		if len(g.picks) == before {
			g.problems = append(g.problems, fmt.Sprintf("spec.amiSelectorTerms[%d]: %s", i, problem))
		}
	}
	if !g.basis.known {
		into.keep(AMIsReady, r, class, g.basis, now)
		return
	}
	chosen := best(g.picks, now)
	if len(chosen) == 0 {
		into.Status.AMIs = nil
		into.add(unmet(AMIsReady, AMINotFound, strings.Join(g.problems, "; ")), g.basis, now)
		return
	}
	age, _ := minAge(class)
	notes := g.problems
	into.Status.AMIs, into.Snapshots = nil, map[string]map[string]int64{}
	for _, p := range chosen {
		ami, note := r.heldBack(class, p, age, now)
		if ami.ID == p.id {
			into.Snapshots[p.id] = p.snapshots
		}
		if note != "" {
			notes = append(notes, note)
		}
		into.Status.AMIs = append(into.Status.AMIs, ami)
	}
	into.AMIChanges = changes(class.Status.AMIs, into.Status.AMIs, chosen)
	into.add(met(AMIsReady, strings.Join(notes, "; ")), g.basis, now)
}

// term adds the images of a term, and returns why there are none.
func (g *images) term(term awsv1.AMISelectorTerm) (problem string) {
	switch {
	case term.Alias != "":
		return g.alias(term)
	case term.ID != "":
		return g.use("image "+term.ID, idKey(term.ID), nil)
	case term.SSMParameter != "":
		return g.parameter(term)
	}
	_, key := queryOf(term, "")
	return g.use("an image with "+ownedText(term), key, nil)
}

func ownedText(term awsv1.AMISelectorTerm) string {
	text := termText("", term.Name, term.Tags)
	if q, _ := queryOf(term, ""); len(q.owners) > 0 {
		text += ", owner " + strings.Join(q.owners, " or ")
	}
	return strings.TrimPrefix(text, ", ")
}

// alias adds the images of an alias. It leaves out variants without a parameter (E-07).
func (g *images) alias(term awsv1.AMISelectorTerm) (problem string) {
	if g.kubernetes == "" {
		g.basis.add(state{failure: &failure{action: "the version of Kubernetes", code: "it is not known yet"}}, 0)
		return ""
	}
	family, release := aliasOf(term)
	var tried []string
	for _, c := range candidates(family, release, g.kubernetes) {
		a := g.knownParameters.get(c.parameter)
		g.basis.add(a.state, g.parameterHolds(parameter{c.parameter, release != latest}, a.value))
		if a.value == "" {
			tried = append(tried, c.parameter)
			continue
		}
		if why := g.use("image "+a.value, idKey(a.value), c.requirements); why != "" {
			tried = append(tried, c.parameter+" ("+why+")")
		}
	}
	if len(tried) == 0 {
		return fmt.Sprintf("alias %s: the family is not known; use al2023 or bottlerocket", term.Alias)
	}
	return fmt.Sprintf("alias %s stands for no image with Kubernetes %s; parameters tried: %s",
		term.Alias, g.kubernetes, listed(tried))
}

// parameter adds the image that a user's parameter names.
func (g *images) parameter(term awsv1.AMISelectorTerm) (problem string) {
	p := parametersOf(term, g.kubernetes)[0]
	a := g.knownParameters.get(p.name)
	g.basis.add(a.state, g.parameterHolds(p, a.value))
	what := "parameter " + p.name
	switch {
	case a.value == "":
		return what + " does not exist, or is empty"
	case !isImageID(a.value):
		return what + " does not hold the id of an image"
	case term.Name == "" && term.Owner == "" && len(term.Tags) == 0:
		return g.use(what+": image "+a.value, idKey(a.value), nil)
	}
	_, key := queryOf(term, a.value)
	return g.use(fmt.Sprintf("%s: image %s with %s", what, a.value, ownedText(term)), key, nil)
}

func isImageID(text string) bool { return strings.HasPrefix(text, "ami-") }

// use adds the images of an answer, and returns why none of them can be used. wants is nil for an image of which only
// the architecture is known.
func (g *images) use(what, key string, wants []corev1.NodeSelectorRequirement) (problem string) {
	a := g.knownImages.get(key)
	if !a.known && a.failure == nil { // not asked, since it is not an id
		return what + " is no image"
	}
	g.basis.add(a.state, g.config.AMIRefresh)
	problem = what + " does not exist, or is not shared with this account"
	found := false
	for _, i := range a.value {
		switch {
		case i.architecture() == "":
			problem = fmt.Sprintf("%s has the architecture %s, nodes have x86_64 or arm64", what, i.machine)
		case !i.usable():
			problem = fmt.Sprintf("%s is %s, not available", what, i.state)
		default:
			found = true
			needs := wants
			if needs == nil {
				needs = requirements(i.architecture(), "")
			}
			g.picks = append(g.picks, pick{i, needs})
		}
	}
	if found {
		return ""
	}
	return problem
}

// best returns one image for each set of requirements: not deprecated before deprecated, then the newest, then by name
// (E-09). The status has them in this order, too.
func best(picks []pick, now time.Time) (chosen []pick) {
	picks = slices.Clone(picks)
	slices.SortStableFunc(picks, func(a, b pick) int {
		return cmp.Or(number(a.deprecated(now))-number(b.deprecated(now)), b.created.Compare(a.created),
			strings.Compare(a.name, b.name), strings.Compare(a.id, b.id),
			strings.Compare(requirementsKey(a.requirements), requirementsKey(b.requirements)))
	})
	seen := map[string]bool{}
	for _, p := range picks {
		if key := requirementsKey(p.requirements); !seen[key] {
			seen[key] = true
			chosen = append(chosen, p)
		}
	}
	return chosen
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// listed joins texts, at most mostPaths of them.
func listed(texts []string) string {
	if more := len(texts) - mostPaths; more > 0 {
		texts = append(slices.Clone(texts[:mostPaths]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
