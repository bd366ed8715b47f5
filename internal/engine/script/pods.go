package script

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func (p *parser) pod(name string, a *attributes) {
	namespace := a.get("ns", "default")
	pod := &cluster.Pod{
		UID: "uid-of-" + namespace + "-" + name, Namespace: namespace, Name: name, Node: a.get("node", ""),
		Promised: a.get("promised", ""), PassedOver: a.get("passed-over", ""),
		Priority: int32(a.number("priority", 0)), Daemon: a.get("daemon", ""), Fixed: a.has("daemon"),
		DoNotDisrupt: a.has("do-not-disrupt"), Terminating: a.has("ending"), Returns: a.has("returns"),
	}
	if pod.Node != "" && p.nodes[pod.Node] == nil {
		a.fail("no node %s above", pod.Node)
	}
	if name := a.get("coming", ""); name != "" {
		if p.nodes[name] == nil || pod.Node != "" {
			a.fail("coming=%s: want a node above, and no node=", name)
		}
		p.coming[pod] = p.nodes[name]
	}
	pod.DeletionCost = int32(a.number("deletion-cost", 0))
	pod.Shape = p.shapes.Intern(p.shape(namespace, a))
	p.pods = append(p.pods, pod)
}

// buffer is a pod of a CapacityBuffer, which has the pod's name without its number.
func (p *parser) buffer(name string, a *attributes) {
	namespace := a.get("ns", "default")
	pod := &cluster.Pod{UID: "uid-of-" + namespace + "-buffer-" + name, Namespace: namespace, Name: name,
		Priority: math.MinInt32}
	shape := p.shape(namespace, a)
	shape.Buffer = namespace + "/" + strings.TrimRight(strings.TrimRight(name, "0123456789"), "-")
	pod.Shape = p.shapes.Intern(shape)
	p.pods = append(p.pods, pod)
}

func (p *parser) daemon(name string, a *attributes) {
	namespace := a.get("ns", "default")
	seen, learnt := p.seen(a, "seen"), p.seen(a, "learnt")
	p.parts.Daemons = append(p.parts.Daemons, cluster.Daemon{
		Name: namespace + "/" + name, Shape: p.shapes.Intern(p.shape(namespace, a)), Seen: seen, Learnt: learnt,
	})
}

// seen reads what the pods of a daemon ask for elsewhere: POOL/TYPE:cpu=2,mem=1Gi. Either name may be left out for
// any.
func (p *parser) seen(a *attributes, word string) (list []cluster.Seen) {
	for _, text := range a.all(word) {
		place, amounts, _ := strings.Cut(text, ":")
		pool, instanceType, found := strings.Cut(place, "/")
		if !found || amounts == "" {
			a.fail("%s=%s: want pool/type:amounts", word, text)
		}
		var pairs [][2]string
		for _, pair := range strings.Split(amounts, ",") {
			name, amount, _ := strings.Cut(pair, "=")
			pairs = append(pairs, [2]string{name, amount})
		}
		requests := a.amounts(pairs)
		requests[resources.NamePods] = 1
		list = append(list, cluster.Seen{Pool: pool, Type: instanceType, Requests: p.space.Vector(requests)})
	}
	return list
}

// podWords are the attributes of a pod that are not resources.
var podWords = []string{
	"ns", "node", "coming", "promised", "passed-over", "priority",
	"daemon", "seen", "learnt", "do-not-disrupt", "ending", "returns", "devices", "shares", "find", "make", "drivers",
	"deletion-cost", "labels", "need", "named", "volume", "blocked", "tolerate",
	"port", "spread", "apart", "together", "wish", "wish-spread", "wish-apart", "wish-together",
}

func (p *parser) shape(namespace string, a *attributes) *cluster.Shape {
	s := &cluster.Shape{Namespace: namespace, Labels: a.labels(a.get("labels", ""))}
	for _, text := range a.all("need") {
		s.Alternatives = append(s.Alternatives,
			cluster.Alternative{Labels: a.requirements(text), Names: requirement.Any("metadata.name")})
	}
	for _, text := range a.all("named") {
		s.Alternatives = append(s.Alternatives,
			cluster.Alternative{Names: requirement.OneOf("metadata.name", strings.Split(text, "|")...)})
	}
	for _, text := range a.all("volume") {
		s.Narrow(inPlace(s.Alternatives, a.requirements(text)))
	}
	if s.Blocked = strings.ReplaceAll(a.get("blocked", ""), "_", " "); s.Blocked != "" {
		s.Narrow([]cluster.Alternative{{Labels: requirement.NewSet(requirement.Nothing(cluster.LabelHostname))}})
	}
	for i, object := range list(a.get("devices", "")) {
		s.Claims = append(s.Claims, cluster.DeviceClaim{Name: "devices-" + strconv.Itoa(i), Object: object})
	}
	p.volumesOf(s, a)
	for _, text := range a.all("tolerate") {
		s.Tolerations = append(s.Tolerations, toleration(text))
	}
	for _, text := range a.all("port") {
		s.HostPorts = append(s.HostPorts, cluster.HostPort{Protocol: "TCP", Port: int32(a.integer(text))})
	}
	for _, text := range a.all("spread") {
		s.Spread = append(s.Spread, p.spread(s, text, a))
	}
	for _, text := range a.all("apart") {
		s.AntiAffinity = append(s.AntiAffinity, p.term(s, text, a))
	}
	for _, text := range a.all("together") {
		s.Affinity = append(s.Affinity, p.term(s, text, a))
	}
	for _, text := range a.all("wish") {
		s.Wishes = append(s.Wishes,
			a.wish(text, func(rest string) cluster.Wish { return cluster.Wish{Labels: a.requirements(rest)} }))
	}
	for _, text := range a.all("wish-spread") {
		s.SoftSpread = append(s.SoftSpread, p.spread(s, text, a))
	}
	for _, apart := range []bool{false, true} {
		for _, text := range a.all(map[bool]string{false: "wish-together", true: "wish-apart"}[apart]) {
			s.Wishes = append(s.Wishes,
				a.wish(text, func(rest string) cluster.Wish {
					return cluster.Wish{Term: p.term(s, rest, a), Apart: apart}
				}))
		}
	}
	pairs := slices.DeleteFunc(slices.Clone(a.pairs),
		func(pair [2]string) bool { return slices.Contains(podWords, pair[0]) })
	for _, pair := range pairs {
		a.used[pair[0]] = true
	}
	s.Requests = p.space.Vector(a.amounts(pairs)).With(resources.Pods, 1)
	return s
}

// inPlace adds to each alternative the demands of a volume's place.
func inPlace(list []cluster.Alternative, place requirement.Set) []cluster.Alternative {
	if len(list) == 0 {
		return []cluster.Alternative{{Labels: place, Names: requirement.Any("metadata.name")}}
	}
	own := slices.Clone(list)
	for i := range own {
		own[i].Labels = own[i].Labels.And(place)
	}
	return own
}

// toleration reads key[=value][:effect], or * for everything.
func toleration(text string) cluster.Toleration {
	if text == "*" {
		return cluster.Toleration{Operator: cluster.TolerationExists}
	}
	key, effect, _ := strings.Cut(text, ":")
	key, value, valued := strings.Cut(key, "=")
	t := cluster.Toleration{Key: key, Operator: cluster.TolerationExists, Effect: effect}
	if valued {
		t.Operator, t.Value = cluster.TolerationEqual, value
	}
	return t
}

// spread reads label:maxSkew[:minDomains][/selector][/ignore-affinity][/honor-taints]; without a selector the pod's
// own labels select.
func (p *parser) spread(s *cluster.Shape, text string, a *attributes) cluster.Spread {
	parts := strings.Split(text, "/")
	fields := strings.Split(parts[0], ":")
	spread := cluster.Spread{Key: longName(fields[0]), MaxSkew: 1, MinDomains: 1, Pods: own(s)}
	if len(fields) > 1 {
		spread.MaxSkew = int32(a.integer(fields[1]))
	}
	if len(fields) > 2 {
		spread.MinDomains = int32(a.integer(fields[2]))
	}
	for _, option := range parts[1:] {
		switch option {
		case "ignore-affinity":
			spread.IgnoreAffinity = true
		case "honor-taints":
			spread.HonorTaints = true
		default:
			spread.Pods = cluster.Selector{Enabled: true, Labels: a.requirements(option)}
		}
	}
	return spread
}

// term reads label[/selector][/ns=namespace][/nslabels=requirement].
func (p *parser) term(s *cluster.Shape, text string, a *attributes) cluster.AffinityTerm {
	parts := strings.Split(text, "/")
	term := cluster.AffinityTerm{Key: longName(parts[0]), Pods: own(s), Namespaces: []string{s.Namespace}}
	for _, option := range parts[1:] {
		if namespace, found := strings.CutPrefix(option, "ns="); found {
			term.Namespaces = []string{namespace}
		} else if labels, found := strings.CutPrefix(option, "nslabels="); found {
			term.NamespaceSelector = cluster.Selector{Enabled: true, Labels: a.requirements(labels)}
			term.Namespaces = nil
		} else {
			term.Pods = cluster.Selector{Enabled: true, Labels: a.requirements(option)}
		}
	}
	return term
}

// wish reads weight:what.
func (a *attributes) wish(text string, read func(string) cluster.Wish) cluster.Wish {
	weight, rest, found := strings.Cut(text, ":")
	if !found {
		a.fail("%s: want weight:what", text)
	}
	w := read(rest)
	w.Weight = int32(a.integer(weight))
	return w
}

func own(s *cluster.Shape) cluster.Selector {
	return cluster.Selector{Enabled: true, Labels: requirement.FromLabels(s.Labels)}
}
