package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Commitment is capacity that is paid for whether nodes use it or not, such as a savings plan or reserved instances
// (K-55). Nodes of all pools use it, and nodes that are not ours.
type Commitment struct {
	Name string
	// Requirements select what is covered, by labels of offerings; only offerings on demand are.
	Requirements requirement.Set
	// PerHour is how much it covers, in dollars per hour at the price on demand; 0 when Instances counts.
	PerHour resources.Money
	// Instances is how many machines it covers, whatever they cost; 0 when PerHour counts.
	Instances int64
}

// Amount is a part of a commitment, counted as the commitment is.
type Amount struct {
	PerHour   resources.Money
	Instances int64
}

// Plus returns the sum.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.PerHour + b.PerHour, a.Instances + b.Instances}
}

// Minus returns the difference.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.PerHour - b.PerHour, a.Instances - b.Instances}
}

// Takes returns what a node of that price takes of the commitment.
func (c Commitment) Takes(price resources.Money) Amount {
	if c.Instances > 0 {
		return Amount{Instances: 1}
	}
	return Amount{PerHour: price}
}

// Has reports whether the commitment has room for more, beside what is used.
func (c Commitment) Has(used, more Amount) bool {
	sum := used.Plus(more)
	return sum.PerHour <= c.PerHour && sum.Instances <= c.Instances
}

// draw is a node that commitments cover.
type draw struct {
	id       string
	created  int64
	ours     bool
	price    resources.Money
	coverage uint64 // bit n for Snapshot.Commitments[n]
}

// Ledger says which nodes of a snapshot use its commitments. Nodes that are being removed do not count. The others
// come in order: the oldest first, and of equals the dearest. Each is paid for by the first commitment that covers it
// and has enough left, as if it were planned then. After that, what is left of amounts in dollars pays for parts of
// nodes. Other orders are tried, too: the cheapest of equals first, and commitments that cover the fewest nodes first.
// The order that pays for most holds. A nil Ledger has nothing to say.
type Ledger struct {
	commitments []Commitment
	draws       []draw
	orders      [][]int // of draws: the dearest of equals first, and the cheapest first where that is another order
}

// Ledger returns the ledger of the snapshot, nil without Commitments.
func (s *Snapshot) Ledger() *Ledger {
	if len(s.Commitments) == 0 {
		return nil
	}
	l := &Ledger{commitments: s.Commitments}
	left := map[string]bool{}
	for _, node := range s.Undrawn {
		left[node.ID()] = true
	}
	for _, list := range [][]*Node{s.Nodes, s.Closed, s.Drawing} {
		for _, node := range list {
			if node.Deleting || left[node.ID()] {
				continue
			}
			if price, coverage := s.termsOf(node); coverage != 0 {
				l.draws = append(l.draws, draw{node.ID(), cmp.Or(node.Created, Never), node.Claim != "" &&
					node.Price != resources.Unpriced, price, coverage})
			}
		}
	}
	slices.SortFunc(l.draws, func(a, b draw) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(b.price, a.price), strings.Compare(a.id, b.id))
	})
	dearest, cheapest := make([]int, len(l.draws)), make([]int, len(l.draws))
	for i := range l.draws {
		dearest[i], cheapest[i] = i, i
	}
	slices.SortFunc(cheapest, func(i, j int) int {
		a, b := l.draws[i], l.draws[j]
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.price, b.price), strings.Compare(a.id, b.id))
	})
	if l.orders = [][]int{dearest}; !slices.Equal(dearest, cheapest) {
		l.orders = append(l.orders, cheapest)
	}
	return l
}

// preferences returns the orders in which commitments are asked: as they are given, and those first that cover fewer
// of the counted nodes. So the result is the same whether nodes are left out or were never there.
func (l *Ledger) preferences(without map[string]bool) [][]int {
	given, covered := make([]int, len(l.commitments)), make([]int, len(l.commitments))
	for i := range l.commitments {
		given[i] = i
		for _, d := range l.draws {
			if !without[d.id] {
				covered[i] += int(d.coverage >> i & 1)
			}
		}
	}
	narrow := slices.Clone(given)
	slices.SortStableFunc(narrow, func(i, j int) int { return cmp.Compare(covered[i], covered[j]) })
	if slices.Equal(given, narrow) {
		return [][]int{given}
	}
	return [][]int{given, narrow}
}

// termsOf returns what a node costs, and which commitments are sure to cover it.
func (s *Snapshot) termsOf(node *Node) (price resources.Money, coverage uint64) {
	for _, capacityType := range node.mayHave(catalog.LabelCapacityType) {
		if capacityType != catalog.OnDemand {
			return 0, 0
		}
	}
	coverage = ^uint64(0)
	for _, instanceType := range node.mayHave(catalog.LabelInstanceType) {
		for _, zone := range node.mayHave(catalog.LabelZone) {
			for _, index := range s.catalogsFor(node) {
				if own, by, sold := index.OnDemandTerms(instanceType, zone); sold {
					price, coverage = max(price, own), coverage&by
					break
				}
			}
		}
	}
	switch {
	case price == 0:
		return 0, 0
	case node.Price != resources.Unpriced:
		return node.Price, coverage
	}
	return price, coverage
}

// mayHave returns the values that the node's label has or may come to have; none when nothing is known. A node without
// a known capacity type is bought on demand: nodes of other programs often do not say.
func (n *Node) mayHave(key requirement.Key) []string {
	if value, present := n.Labels[string(key)]; present {
		return []string{value}
	}
	values, _ := n.Open.Get(key).Values()
	return values
}

// catalogsFor returns the catalogues that may know a node: that of its own pool alone, or those of all pools.
func (s *Snapshot) catalogsFor(node *Node) []*catalog.Index {
	var list []*catalog.Index
	for _, pool := range s.Pools {
		switch {
		case pool.Catalog == nil:
		case pool.Name == node.Pool:
			return []*catalog.Index{pool.Catalog}
		case !slices.Contains(list, pool.Catalog):
			list = append(list, pool.Catalog)
		}
	}
	return list
}

// Used returns what nodes use of each commitment, in the order of the commitments. Nodes whose ID is in without do not
// count.
func (l *Ledger) Used(without map[string]bool) []Amount {
	used, _ := l.tally(without)
	return used
}

// Left returns what nodes leave of each commitment.
func (l *Ledger) Left() []Amount {
	if l == nil {
		return nil
	}
	left := l.Used(nil)
	for i, c := range l.commitments {
		left[i] = Amount{c.PerHour, c.Instances}.Minus(left[i])
	}
	return left
}

// Saved returns what commitments pay for our nodes, those with a NodeClaim, per hour.
func (l *Ledger) Saved() (sum resources.Money) {
	_, paid := l.tally(nil)
	for i, part := range paid {
		if l.draws[i].ours {
			sum += part
		}
	}
	return sum
}

// Freed returns how much of the price of these nodes would not be saved without them: commitments pay for it, and no
// other node would use that.
func (l *Ledger) Freed(nodes ...*Node) resources.Money {
	if l == nil || len(nodes) == 0 {
		return 0
	}
	without := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		without[node.ID()] = true
	}
	_, now := l.tally(nil)
	_, then := l.tally(without)
	sum := resources.Money(0)
	for i := range now {
		sum += now[i] - then[i]
	}
	return sum
}

// tally returns what is used of each commitment, and how much of each node's price that pays for, in the order that
// pays for most.
func (l *Ledger) tally(without map[string]bool) (used []Amount, paid []resources.Money) {
	if l == nil {
		return nil, nil
	}
	preferences := l.preferences(without)
	for _, order := range l.orders {
		for _, preference := range preferences {
			if nowUsed, now := l.inOrder(order, preference, without); paid == nil || total(now) > total(paid) {
				used, paid = nowUsed, now
			}
		}
	}
	return used, paid
}

func total(paid []resources.Money) (sum resources.Money) {
	for _, part := range paid {
		sum += part
	}
	return sum
}

// inOrder is tally for one order of draws and one of commitments.
func (l *Ledger) inOrder(order, preference []int, without map[string]bool) (used []Amount, paid []resources.Money) {
	used, paid = make([]Amount, len(l.commitments)), make([]resources.Money, len(l.draws))
	for _, n := range order {
		d := l.draws[n]
		if at := l.first(d, preference, used); at >= 0 && !without[d.id] {
			used[at] = used[at].Plus(l.commitments[at].Takes(d.price))
			paid[n] = d.price
		}
	}
	for n, d := range l.draws {
		if paid[n] == d.price || without[d.id] {
			continue
		}
		for _, i := range preference {
			if c := l.commitments[i]; d.coverage&(1<<i) != 0 && c.Instances == 0 {
				part := min(d.price-paid[n], c.PerHour-used[i].PerHour)
				paid[n], used[i].PerHour = paid[n]+part, used[i].PerHour+part
			}
		}
	}
	return used, paid
}

// first returns the first commitment that covers a node and has enough left for the whole of it, -1 for none.
func (l *Ledger) first(d draw, preference []int, used []Amount) int {
	for _, i := range preference {
		if c := l.commitments[i]; d.coverage&(1<<i) != 0 && c.Has(used[i], c.Takes(d.price)) {
			return i
		}
	}
	return -1
}
