package takeover

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// devices finds pods that ask for devices by ResourceClaims.
func devices(p *picture) (found []Finding) {
	value, given := p.Theirs.value("ignore-dra-requests")
	plans := given && !p.Theirs.on("ignore-dra-requests")
	if plans {
		found = append(found, Finding{Severity: Danger, Kind: KindSettings, Name: "ignore-dra-requests",
			Consequence: fmt.Sprintf("IGNORE_DRA_REQUESTS is %q: Karpenter launches nodes for pods that ask for "+
				"devices by ResourceClaims, "+
				"and Joiner launches none: it expects them on nodes that are there and have the devices", value),
			Remedy: "keep nodes with the devices in a NodePool with spec.replicas, with Karpenter or by hand"})
	}
	asking := map[string]int{}
	for _, pod := range p.pods {
		if len(pod.Spec.ResourceClaims) > 0 && !translate.Finished(pod) {
			asking[pod.Namespace]++
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(asking)) {
		f := Finding{Severity: Info, Kind: "Namespace", Name: namespace,
			Consequence: fmt.Sprintf(
				"%s for devices by ResourceClaims: neither launches nodes for them; Joiner does not move nodes on "+
					"which one runs", count(asking[namespace], "pod asks", "pods ask")),
			Remedy: "nothing has to be done"}
		if plans {
			f.Severity = Danger
			f.Consequence =
				fmt.Sprintf(
					"%s for devices by ResourceClaims: Joiner launches no node for them, and none moves that has its devices",
					count(asking[namespace], "pod asks", "pods ask"))
			f.Remedy = "see to nodes for them before the switch"
		}
		found = append(found, f)
	}
	return found
}

// rebooting is Karpenter's mark of a node that it reboots: a condition of the NodeClaim, and a taint with the prefix
// karpenter.sh/.
const (
	rebootingCondition = "Rebooting"
	rebootingTaint     = karpenterv1.Group + "/rebooting"
)

// inFlight finds what Karpenter has begun and not finished.
func inFlight(p *picture) (found []Finding) {
	owned := map[string]bool{} // nodes that are covered by their claim
	add := func(kind, name, consequence, remedy string) {
		found = append(found, Finding{Severity: Wait, Kind: kind, Name: name, Consequence: consequence,
			Remedy: remedy})
	}
	const reboots = "Karpenter reboots it: Joiner opens the node when it runs anew. A reboot that Karpenter has " +
		"not asked for yet is taken " +
		"back, unless the gate NodeRepair is on"
	const alone = "it has the taint of a reboot, and no NodeClaim tells of one: nobody would open the node again"
	for _, claim := range p.claims {
		reason, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
		switch {
		case claim.DeletionTimestamp != nil:
			add(kindClaim, claim.Name, "its node drains: Joiner goes on with it",
				"wait until it is gone, if the drain is to end as it began")
		case condition.IsTrue(claim.Status.Conditions, rebootingCondition):
			add(kindClaim, claim.Name, reboots, "wait until the reboot is done")
		case reason.Status == "True":
			add(kindClaim, claim.Name,
				fmt.Sprintf("Karpenter has chosen it to go (%s): Joiner judges it anew, and takes it back where it "+
					"finds otherwise", reason.Reason), "wait until it is gone or released")
		default:
			continue
		}
		owned[claim.Status.NodeName] = true
	}
	for _, node := range p.nodes {
		for _, taint := range node.Spec.Taints {
			switch {
			case owned[node.Name]:
			case taint.Key == rebootingTaint:
				add("Node", node.Name, alone,
					"wait until the reboot is done; else take the taint away: kubectl taint node "+
						node.Name+" "+rebootingTaint+"-")
			case taint.Key == karpenterv1.DisruptedTaintKey:
				add("Node", node.Name,
					"Karpenter has closed it to remove it: Joiner opens it again, or removes it, by its own judgement",
					"wait until it is gone or open")
			}
		}
	}
	return found
}

// protected counts what nobody may disrupt.
func protected(p *picture) (found []Finding) {
	for _, budget := range p.budgets {
		if why := translate.NeverAllows(budget); why != "" {
			s := budget.Status
			found = append(found, Finding{Severity: Info, Kind: "PodDisruptionBudget", Namespace: budget.Namespace,
				Name: budget.Name, Consequence: fmt.Sprintf(
					"it wants %d of %d pods to be healthy, and never allows an eviction: nodes with them are not "+
						"consolidated, and a drain waits for them", s.DesiredHealthy, s.ExpectedPods),
				Remedy: why + "; nothing differs from Karpenter"})
		}
	}
	kept := func(annotations map[string]string) bool {
		return annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true"
	}
	pods, nodes := 0, 0
	for _, pod := range p.pods {
		if kept(pod.Annotations) && !translate.Finished(pod) {
			pods++
		}
	}
	for _, node := range p.nodes {
		if kept(node.Annotations) {
			nodes++
		}
	}
	if pods+nodes > 0 {
		found = append(found, Finding{Severity: Info, Kind: "Pod",
			Consequence: fmt.Sprintf("%s and %s with %s: they keep their nodes, as with Karpenter",
				count(pods, "pod", "pods"), count(nodes, "node", "nodes"), karpenterv1.DoNotDisruptAnnotationKey),
			Remedy: "nothing has to be done"})
	}
	return found
}

// served are the metrics that Joiner has, a name on each line. A test of package metrics compares it with what is
// registered.
//
//go:embed metrics.txt
var served string

// servedByEC2 are the metrics of the provider for EC2. A test of its package compares it with them.
//
//go:embed metrics-ec2.txt
var servedByEC2 string

// Served returns the names of Joiner's metrics that users of Karpenter may query.
func Served() []string { return strings.Fields(served + servedByEC2) }

var named = regexp.MustCompile(
	`\bkarpenter_[a-z0-9_:]+|\boperator_[a-z0-9_]*(?:status_condition|termination)_[a-z0-9_:]+`)

// metrics finds names of metrics that nobody would serve any more.
func metrics(p *picture) (found []Finding) {
	have := map[string]bool{}
	for _, name := range Served() {
		have[name] = true
	}
	look := func(o unstructured.Unstructured, content any) {
		data, err := json.Marshal(content)
		if err != nil {
			return
		}
		lacks := map[string]bool{}
		for _, name := range named.FindAllString(string(data), -1) {
			family := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if cut, is := strings.CutSuffix(name, suffix); is && have[cut] {
					family = cut
				}
			}
			// A name with a colon is the result of a recording rule. One that ends in _ is a prefix of several names.
			if !have[family] && !strings.ContainsAny(name, ":") && !strings.HasSuffix(name, "_") {
				lacks[name] = true
			}
		}
		if len(lacks) > 0 {
			names := slices.Sorted(maps.Keys(lacks))
			found = append(found, Finding{Severity: Warning, Kind: o.GetKind(), Namespace: o.GetNamespace(),
				Name: o.GetName(),
				Consequence: fmt.Sprintf("it asks for %s, which Joiner does not serve: %s",
					count(len(names), "metric", "metrics"), some(names)),
				Remedy: "change the queries; docs/monitoring.md lists what Joiner serves"})
		}
	}
	for _, rule := range p.others["PrometheusRule"] {
		look(rule, rule.Object["spec"])
	}
	for _, board := range p.others["ConfigMap"] {
		if _, is := board.GetLabels()[DashboardLabel]; is {
			look(board, board.Object["data"])
		}
	}
	return found
}

// nameLabel is the label with which Karpenter's chart names its objects.
const (
	nameLabel = "app.kubernetes.io/name"
	nameValue = "karpenter"
	// programLabel is on every Deployment of our chart.
	programLabel = "joiner.sh/program"
)

// rights finds policies and rights that are for Karpenter only.
func rights(p *picture) (found []Finding) {
	account := p.Theirs.Account
	namespace, name, _ := strings.Cut(account, ":")
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, o := range p.others[kind] {
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			if o.GetLabels()[nameLabel] == nameValue || account == "" ||
				!slices.ContainsFunc(subjects, func(s any) bool {
					subject, _ := s.(map[string]any)
					return subject["kind"] == "ServiceAccount" && subject["name"] == name &&
						subject["namespace"] == namespace
				}) {
				continue
			}
			found = append(found, Finding{Severity: Warning, Kind: kind, Namespace: o.GetNamespace(),
				Name: o.GetName(),
				Consequence: fmt.Sprintf("it gives rights to Karpenter's service account %s, "+
					"which no chart of Karpenter's made: Joiner's has "+
					"them not", account),
				Remedy: "give them to Joiner's service account too, if it needs them"})
		}
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration",
		"MutatingWebhookConfiguration", "NetworkPolicy"} {
		for _, o := range p.others[kind] {
			if o.GetLabels()[nameLabel] == nameValue {
				continue
			}
			if what := p.names(o); what != "" {
				found = append(found, Finding{Severity: Warning, Kind: kind, Namespace: o.GetNamespace(),
					Name:        o.GetName(),
					Consequence: "it names " + what + ": it does not hold for Joiner, or refuses what Joiner does",
					Remedy:      "name Joiner's service account and labels in it too"})
			}
		}
	}
	return found
}

// names returns the name by which an object refers to Karpenter; "" if it does not.
func (p *picture) names(o unstructured.Unstructured) string {
	content := maps.Clone(o.Object)
	delete(content, "metadata")
	data, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	if user := "system:serviceaccount:" + p.Theirs.Account; p.Theirs.Account != "" &&
		strings.Contains(string(data), user) {
		return "Karpenter's user " + user
	}
	if label := fmt.Sprintf("%q:%q", nameLabel, nameValue); strings.Contains(string(data), label) {
		return "the label " + nameLabel + "=" + nameValue + " of Karpenter's pods"
	}
	return ""
}

// Running finds Karpenter's Deployment among objects, by its label or its image. If there are several, the error names
// them.
func Running(deployments []unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	var names []string
	for i := range deployments {
		o := &deployments[i]
		if o.GetKind() == "Deployment" && isKarpenter(o) {
			found = append(found, o)
			names = append(names, o.GetNamespace()+"/"+o.GetName())
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	slices.Sort(names)
	return nil, fmt.Errorf("several Deployments may be Karpenter's (%s): name it by --from-deployment",
		strings.Join(names, ", "))
}

func isKarpenter(o *unstructured.Unstructured) bool {
	if o.GetLabels()[programLabel] != "" { // ours, named like Karpenter's (K-23)
		return false
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		image, _ := container["image"].(string)
		image, _, _ = strings.Cut(image, "@")
		if strings.Contains(image, "/joiner") {
			return false
		}
		if strings.Contains(image, "karpenter/controller") {
			return true
		}
	}
	return o.GetLabels()[nameLabel] == nameValue
}
