package dump

import (
	"maps"
	"slices"
	"strings"
)

// Kinds of names. Nodes and claims are one kind, since either stands for a node, and host names are nodes' names.
const (
	kindPod        = "pod"
	kindNode       = "node"
	kindPool       = "pool"
	kindNamespace  = "namespace"
	kindUID        = "uid"
	kindDaemon     = "daemon"
	kindBudget     = "budget"
	kindAddress    = "address"
	kindText       = "text"
	kindZone       = "zone"
	kindKey        = "key"
	kindResource   = "resource"
	kindCommitment = "commitment"
	kindValue      = "value " // of a label: with the label's key
	kindTaint      = "value of taint "
)

// walk visits all names in records with their kinds, and replaces each by the result of visit.
type walk struct {
	how     Redaction
	visit   func(kind, name string) string
	bounded func(kind string) // called for kinds that are compared as numbers
}

func (w *walk) name(kind string, name *string) {
	if *name != "" {
		*name = w.visit(kind, *name)
	}
}

func (w *walk) names(kind string, names []string) {
	for i := range names {
		w.name(kind, &names[i])
	}
}

// key visits the key of a label or a taint.
func (w *walk) key(key *string) {
	if w.how == RedactAll && *key != fieldName {
		w.name(kindKey, key)
	}
}

// fieldName is the field in requirements on a node's name, which is no label.
const fieldName = "metadata.name"

// value visits a value of a label.
func (w *walk) value(key string, value *string) {
	if kind := w.kindOf(key); kind != "" {
		w.name(kind, value)
	}
}

// kindOf returns the kind of a label's values; "" if they are no secret.
func (w *walk) kindOf(key string) string {
	switch {
	case key == "kubernetes.io/hostname" || key == fieldName:
		return kindNode
	case key == "karpenter.sh/nodepool":
		return kindPool
	case key == "kubernetes.io/metadata.name":
		return kindNamespace
	case strings.HasSuffix(key, "/zone") || strings.HasSuffix(key, "/region") || strings.HasSuffix(key, "/zone-id"):
		if w.how == RedactAll {
			return kindZone
		}
		return ""
	case plainValues(key):
		return ""
	}
	return kindValue + key
}

// plainValues reports whether a label only says what kind of machine it is, not whose.
func plainValues(key string) bool {
	if slices.Contains([]string{"kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type",
		"karpenter.sh/capacity-type", "node.kubernetes.io/windows-build"}, key) {
		return true
	}
	machine := strings.HasPrefix(key, "karpenter.k8s.aws/instance-") ||
		strings.HasPrefix(key, "karpenter.kwok.sh/instance-")
	return machine && !strings.HasSuffix(key, "-id")
}

// knownKey reports whether the key of a label is one of Kubernetes, Karpenter or Joiner.
func knownKey(key string) bool {
	host, _, found := strings.Cut(key, "/")
	return found &&
		slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws", "kwok.sh",
			"joiner.sh"}, func(known string) bool { return host == known || strings.HasSuffix(host, "."+known) })
}

// knownResource reports whether a resource is one of Kubernetes, or of a common device.
func knownResource(name string) bool {
	host, _, custom := strings.Cut(name, "/")
	return !custom || slices.Contains([]string{"kubernetes.io", "nvidia.com", "amd.com", "habana.ai",
		"aws.amazon.com"}, host)
}

func (w *walk) labels(labels *map[string]string) {
	fresh := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(*labels)) {
		value, own := (*labels)[key], key
		w.value(key, &value)
		w.key(&own)
		fresh[own] = value
	}
	*labels = some(fresh)
}

func (w *walk) requirements(records []requirementRecord) {
	for i := range records {
		w.requirement(&records[i])
	}
}

func (w *walk) requirement(r *requirementRecord) {
	if r.Gte != nil || r.Lte != nil {
		w.bounded(w.kindOf(r.Key))
	}
	for i := range r.In {
		w.value(r.Key, &r.In[i])
	}
	for i := range r.NotIn {
		w.value(r.Key, &r.NotIn[i])
	}
	w.key(&r.Key)
}

func (w *walk) selector(s *selectorRecord) { w.requirements(s.Labels) }

func (w *walk) taints(taints []taintRecord) {
	for i := range taints {
		w.name(kindTaint+taints[i].Key, &taints[i].Value)
		w.key(&taints[i].Key)
	}
}

func (w *walk) ports(ports []portRecord) {
	for i := range ports {
		w.name(kindAddress, &ports[i].IP)
	}
}

func (w *walk) content(c *content) {
	if w.how == RedactAll {
		w.names(kindResource, c.picture.Resources)
	}
	w.budgets(&c.picture.Options)
	for i := range c.picture.Commitments {
		w.name(kindCommitment, &c.picture.Commitments[i].Name)
		w.requirements(c.picture.Commitments[i].Requirements)
	}
	w.storage(&c.picture)
	for i := range c.catalogues {
		w.catalogue(&c.catalogues[i])
	}
	for i := range c.namespaces {
		w.name(kindNamespace, &c.namespaces[i].Name)
		w.labels(&c.namespaces[i].Labels)
	}
	for i := range c.pools {
		p := &c.pools[i]
		w.name(kindPool, &p.Name)
		w.name(kindUID, &p.UID)
		w.name(kindText, &p.Blocked)
		w.requirements(p.Requirements)
		w.taints(p.Taints)
		for j := range p.MinValues {
			w.key(&p.MinValues[j].Key)
		}
	}
	for i := range c.shapes {
		w.shape(&c.shapes[i])
	}
	for i := range c.daemons {
		w.name(kindDaemon, &c.daemons[i].Name)
		for _, list := range [][]seenRecord{c.daemons[i].Seen, c.daemons[i].Learnt} {
			for j := range list {
				w.name(kindPool, &list[j].Pool)
			}
		}
	}
	for i := range c.nodes {
		w.node(&c.nodes[i])
	}
	for i := range c.guards {
		w.name(kindNamespace, &c.guards[i].Namespace)
		w.name(kindBudget, &c.guards[i].Name)
		w.selector(&c.guards[i].Pods)
	}
	for i := range c.holds {
		w.name(kindPool, &c.holds[i].Pool)
		w.name(kindText, &c.holds[i].Why)
	}
	for i := range c.plans {
		w.plan(&c.plans[i])
	}
}

func (w *walk) budgets(o *optionsRecord) {
	fresh := map[string][]budgetRecord{}
	for pool, budgets := range o.Budgets {
		w.name(kindPool, &pool)
		fresh[pool] = budgets
	}
	if o.Budgets != nil {
		o.Budgets = fresh
	}
	o.Passing = slices.Clone(o.Passing)
	for i := range o.Passing {
		w.name(kindPool, &o.Passing[i])
	}
	slices.Sort(o.Passing)
}

func (w *walk) catalogue(c *catalogueRecord) {
	for i := range c.WellKnown {
		w.key(&c.WellKnown[i])
	}
	for i := range c.Types {
		w.requirements(c.Types[i].Labels)
	}
	for i := range c.Offers {
		w.value("topology.kubernetes.io/zone", &c.Offers[i].Zone)
		w.requirements(c.Offers[i].Labels)
	}
}

// buffer visits the parts of namespace/name.
func (w *walk) buffer(buffer *string) {
	if namespace, name, both := strings.Cut(*buffer, "/"); both {
		w.name(kindNamespace, &namespace)
		w.name(kindPod, &name)
		*buffer = namespace + "/" + name
		return
	}
	w.name(kindPod, buffer)
}

func (w *walk) shape(s *shapeRecord) {
	w.name(kindNamespace, &s.Namespace)
	w.labels(&s.Labels)
	for _, list := range [][]alternativeRecord{s.Alternatives, s.Own} {
		for i := range list {
			w.requirements(list[i].Labels)
			w.requirement(&list[i].Names)
		}
	}
	w.buffer(&s.Buffer)
	w.name(kindText, &s.Blocked)
	for i := range s.Tolerations {
		t := &s.Tolerations[i]
		if t.Operator == "Lt" || t.Operator == "Gt" {
			w.bounded(kindTaint + t.Key)
		}
		w.name(kindTaint+t.Key, &t.Value)
		w.key(&t.Key)
	}
	w.ports(s.HostPorts)
	w.volumesOf(s)
	for _, list := range [][]spreadRecord{s.Spread, s.SoftSpread} {
		for i := range list {
			w.key(&list[i].Key)
			w.selector(&list[i].Pods)
		}
	}
	for _, list := range [][]termRecord{s.Affinity, s.AntiAffinity} {
		for i := range list {
			w.term(&list[i])
		}
	}
	for i := range s.Wishes {
		w.requirements(s.Wishes[i].Labels)
		w.term(&s.Wishes[i].Term)
	}
	for i := range s.Pods {
		w.pod(&s.Pods[i])
	}
}

func (w *walk) term(t *termRecord) {
	w.key(&t.Key)
	w.selector(&t.Pods)
	w.names(kindNamespace, t.Namespaces)
	w.selector(&t.NamespaceSelector)
}

func (w *walk) pod(p *podRecord) {
	w.name(kindUID, &p.UID)
	w.name(kindNamespace, &p.Namespace)
	w.name(kindPod, &p.Name)
	w.name(kindNode, &p.Node)
	w.name(kindNode, &p.Promised)
	if p.PassedOver != "" {
		nodes := strings.Split(p.PassedOver, ",")
		w.names(kindNode, nodes)
		p.PassedOver = strings.Join(nodes, ",")
	}
	w.name(kindDaemon, &p.Daemon)
}

func (w *walk) node(n *nodeRecord) {
	w.name(kindNode, &n.Name)
	w.name(kindNode, &n.Claim)
	w.name(kindUID, &n.ClaimUID)
	w.name(kindPool, &n.Pool)
	w.labels(&n.Labels)
	w.requirements(n.Open)
	w.taints(n.Taints)
	w.ports(n.Ports)
	w.names(kindNode, n.Replaces)
	w.names(kindVolume, n.Attached)
	w.drivers(n.Drivers)
	w.name(kindText, &n.Held)
}
