package launcher

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// memory is what a process knows of launches beside what is written on claims: its latest writes, which the cache may
// not show yet.
type memory struct {
	dealt    map[string]dealing           // by UID of the claim: its machine
	owner    map[string]string            // by provider ID: the UID of the claim that it was dealt to
	intended map[string]launchid.ID       // by UID: the launch that this process wrote last
	tries    map[launchid.ID]launchid.Try // what was done for a launch
	over     map[launchid.ID]bool         // launches that will bring nothing more
	missing  map[string]time.Time         // by UID: since when a known claim is in no list
	held     map[launchid.ID]bool         // launches whose machines this process hands out
	own      map[string]string            // by UID: the mark that this process wrote last
	// by UID: the last mark of another process that one of this process has replaced
	replaced map[string]string
	marks    int // how many marks this process has made
}

// dealing is a machine that was given to a claim, and its launch.
type dealing struct {
	launch     launchid.ID
	providerID string
	at         time.Time
}

func newMemory() memory {
	return memory{
		dealt: map[string]dealing{}, owner: map[string]string{}, intended: map[string]launchid.ID{},
		tries: map[launchid.ID]launchid.Try{}, over: map[launchid.ID]bool{}, missing: map[string]time.Time{},
		held: map[launchid.ID]bool{}, own: map[string]string{}, replaced: map[string]string{},
	}
}

// launchOf returns the last launch of a claim: the one this process wrote, or a later one that was read.
func (m *memory) launchOf(claim launchid.Claim) launchid.ID {
	own := m.intended[claim.UID]
	if own == "" || round(claim.Launch) > round(own) {
		return claim.Launch
	}
	return own
}

// round returns the round of a launch, -1 for none.
func round(id launchid.ID) int {
	if id == "" {
		return -1
	}
	_, round, _ := id.Parse()
	return round
}

func (m *memory) deal(uid string, launch launchid.ID, providerID string, at time.Time) {
	m.dealt[uid] = dealing{launch, providerID, at}
	m.owner[providerID] = uid
}

// with adds what this process knows to what was read. A machine that EC2 both listed and named in an answer is in the
// result only once: two claims must not share it.
func (m *memory) with(claims []launchid.Claim, machines []launchid.Instance) ([]launchid.Claim, []launchid.Instance) {
	claims, machines = slices.Clone(claims), slices.Clone(machines)
	slices.SortStableFunc(machines, earlier)
	machines = slices.CompactFunc(machines, func(a, b launchid.Instance) bool { return a.ProviderID == b.ProviderID })
	for i := range claims {
		claims[i].Launch = m.launchOf(claims[i])
		if dealt, has := m.dealt[claims[i].UID]; has && claims[i].ProviderID == "" {
			claims[i].ProviderID = dealt.providerID
		}
	}
	for i := range machines {
		machines[i].DealtTo = m.owner[machines[i].ProviderID]
	}
	return claims, machines
}

// forgetAfter is how long a claim must be in no list before it is forgotten: then it is gone, and not just new.
const forgetAfter = 10 * time.Minute

// prune forgets claims that are gone, and launches without claims.
func (m *memory) prune(claims []launchid.Claim, now time.Time) {
	listed := map[string]bool{}
	for _, claim := range claims {
		listed[claim.UID] = true
		delete(m.missing, claim.UID)
	}
	for _, uid := range slices.Concat(sortedKeys(m.dealt), sortedKeys(m.intended), sortedKeys(m.own)) {
		since, known := m.missing[uid]
		switch {
		case listed[uid]:
		case !known:
			m.missing[uid] = now
		case now.Sub(since) > forgetAfter:
			delete(m.owner, m.dealt[uid].providerID)
			delete(m.dealt, uid)
			delete(m.intended, uid)
			delete(m.own, uid)
			delete(m.replaced, uid)
			delete(m.missing, uid)
		}
	}
	used := map[launchid.ID]bool{}
	for _, claim := range claims {
		used[m.launchOf(claim)] = true
	}
	for _, id := range m.intended {
		used[id] = true
	}
	maps.DeleteFunc(m.tries, func(id launchid.ID, try launchid.Try) bool { return !used[id] && !try.Busy })
	maps.DeleteFunc(m.over, func(id launchid.ID, _ bool) bool { return !used[id] })
	maps.DeleteFunc(m.held, func(id launchid.ID, _ bool) bool { return !used[id] && !m.tries[id].Busy })
}

// whose finds the claim of each machine: the one that has it or to which it was dealt, the one whose name it has, or
// one that waits for a machine of its launch.
func whose(claims []launchid.Claim, machines []launchid.Instance, tries map[launchid.ID]launchid.Try,
	now time.Time) Owners {
	owners := Owners{Claims: map[string]string{}, Orphans: map[string]bool{}}
	for _, id := range launchid.Orphans(claims, machines, tries, now) {
		owners.Orphans[id] = true
	}
	take := launchid.Recover(claims, machines, tries, now).Take
	byMachine, byName, waiting := map[string]string{}, map[string]string{}, map[launchid.ID]string{}
	for uid, id := range take {
		byMachine[id] = uid
	}
	for _, claim := range claims {
		byName[claim.Name] = claim.UID
		if claim.ProviderID != "" {
			byMachine[claim.ProviderID] = claim.UID
		} else if first := waiting[claim.Launch]; first == "" || claim.UID < first {
			waiting[claim.Launch] = claim.UID
		}
	}
	for _, machine := range machines {
		uid := cmp.Or(byMachine[machine.ProviderID], machine.DealtTo)
		if uid == "" && machine.ClaimName != "" {
			uid = byName[machine.ClaimName]
		}
		if uid == "" && machine.Launch != "" {
			uid = waiting[machine.Launch]
		}
		if uid != "" && !owners.Orphans[machine.ProviderID] {
			owners.Claims[machine.ProviderID] = uid
		}
	}
	return owners
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
