package launchid_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// The possible reactions of EC2 to a repeated client token.
const (
	sameAnswer = iota
	noInstances
	mismatch
	secondLaunch
	behaviours
)

// machine is an instance of the model.
type machine struct {
	launchid.Instance
	visible time.Duration // from when on EC2 shows it
}

// model is EC2, an API server and a controller that may crash at each step. Chance comes from rapid as long as there
// is trouble.
type model struct {
	t         *rapid.T
	behaviour int
	lag       int // seconds by which EC2 shows instances late, at most
	trouble   bool
	now       time.Duration

	machines map[string]*machine
	tokens   map[launchid.ID][]string
	claims   map[string]*stored
	removeBy map[string]time.Duration // claims that are going, without a machine

	cache map[string]stored            // claims as the controller has read them
	tries map[launchid.ID]launchid.Try // the controller's memory
	dealt map[string]string
	heard map[string]bool // instances that answers have named
}

// stored is a claim of the API server. A write names the version that was read.
type stored struct {
	launchid.Claim
	version int
	read    time.Duration // when; of one that is not in the cache, when it was made
}

func (m *model) chance(percent int, what string) bool {
	return m.trouble && rapid.IntRange(0, 99).Draw(m.t, what) < percent
}

// crash loses the controller's memory; its caller stops.
func (m *model) crash() bool {
	if !m.chance(5, "crash") {
		return false
	}
	m.forget()
	return true
}

// forget begins a process: it knows nothing and reads all claims.
func (m *model) forget() {
	m.tries, m.dealt, m.heard = map[launchid.ID]launchid.Try{}, map[string]string{}, map[string]bool{}
	m.cache = map[string]stored{}
	m.read(true)
}

// read brings the cache up to date, claim by claim, unless that is late; by no more than a minute.
func (m *model) read(all bool) {
	for _, uid := range slices.Sorted(maps.Keys(m.cache)) {
		late := m.cache[uid].read+50*time.Second <= m.now
		if m.claims[uid] == nil && (all || late || !m.chance(40, "late")) {
			delete(m.cache, uid)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(m.claims)) {
		known, found := m.cache[uid]
		if !found {
			known.read = m.claims[uid].read
		}
		if late := known.read+50*time.Second <= m.now; all || late || !m.chance(40, "late") {
			m.cache[uid] = stored{Claim: m.claims[uid].Claim, version: m.claims[uid].version, read: m.now}
		}
	}
}

// write changes a claim, unless it is not of that version any more. It returns the new version, 0 for a conflict.
func (m *model) write(uid string, version int, change func(*launchid.Claim)) int {
	c := m.claims[uid]
	if c == nil || c.version != version {
		return 0
	}
	change(&c.Claim)
	c.version++
	return c.version
}

// createFleet is EC2's call. answered is false when the answer is lost, before or after the effect.
func (m *model) createFleet(id launchid.ID, n int) (ids []string, answered bool) {
	if m.chance(15, "lost before") {
		return nil, false
	}
	before, known := m.tokens[id]
	if known && m.behaviour != secondLaunch {
		if m.behaviour == sameAnswer {
			ids = before
		}
		return ids, !m.chance(10, "lost")
	}
	if m.chance(20, "short") {
		n = rapid.IntRange(0, n).Draw(m.t, "had")
	}
	for range n {
		one := &machine{}
		one.ProviderID, one.Launch, one.Launched = fmt.Sprintf("i-%03d", len(m.machines)), id, m.time()
		one.visible = m.now + time.Duration(rapid.IntRange(0, m.lag).Draw(m.t, "lag"))*time.Second
		m.machines[one.ProviderID] = one
		ids = append(ids, one.ProviderID)
	}
	m.tokens[id] = ids
	return ids, !m.chance(20, "lost after")
}

func (m *model) time() time.Time { return time.Unix(0, 0).Add(m.now) }

// shown are the instances that EC2 shows, with those that answers have named and EC2 does not show yet.
func (m *model) shown(named bool) []launchid.Instance {
	var all []launchid.Instance
	for _, id := range slices.Sorted(maps.Keys(m.machines)) {
		one := m.machines[id].Instance
		one.DealtTo = m.dealt[id]
		switch {
		case m.machines[id].visible <= m.now:
			all = append(all, one)
		case named && m.heard[id]:
			one.Ending = false // that is not known
			all = append(all, one)
		}
	}
	return all
}

func (m *model) list() (all []launchid.Claim) {
	for _, uid := range slices.Sorted(maps.Keys(m.cache)) {
		all = append(all, m.cache[uid].Claim)
	}
	return all
}

// launch writes the intent, calls, and writes the result.
func (m *model) launch(uids []string, ids []launchid.ID) {
	if len(uids) == 0 {
		return
	}
	id := launchid.New(uids, launchid.NextRound(ids))
	versions := map[string]int{}
	for _, uid := range uids {
		if m.crash() {
			return
		}
		versions[uid] = m.write(uid, m.cache[uid].version, func(c *launchid.Claim) { c.Launch = id })
		if versions[uid] == 0 {
			return // what was written stays, and is recovered
		}
	}
	_, used := m.tokens[id] // then what EC2 says is no refusal
	had, answered := m.createFleet(id, len(uids))
	if m.crash() || !answered || used {
		return
	}
	for i, uid := range uids {
		switch {
		case i >= len(had): // refused: the claim is given up
			if m.claims[uid] != nil && m.claims[uid].version == versions[uid] {
				delete(m.claims, uid)
			}
		case !m.take(uid, had[i], versions[uid]):
			return
		}
	}
}

// take writes a claim's machine, unless that fails. It returns false for a crash.
func (m *model) take(uid, id string, version int) bool {
	m.dealt[id] = uid
	if m.crash() {
		return false
	}
	if m.chance(5, "conflict") || m.write(uid, version, func(c *launchid.Claim) { c.ProviderID = id }) == 0 {
		return true
	}
	for _, c := range m.claims {
		if c.ProviderID == id && c.UID != uid {
			m.t.Fatalf("%s becomes the machine of %s and is that of %s", id, uid, c.UID)
		}
	}
	return !m.crash()
}

// recover follows the rules of the package.
func (m *model) recover() {
	plan := launchid.Recover(m.list(), m.shown(true), m.tries, m.time())
	for _, uid := range slices.Sorted(maps.Keys(plan.Take)) {
		if !m.take(uid, plan.Take[uid], m.cache[uid].version) {
			return
		}
	}
	for _, r := range plan.Repeat {
		if m.crash() {
			return
		}
		if had, answered := m.createFleet(r.Launch, r.Count); answered {
			m.tries[r.Launch] = launchid.Try{Repeated: m.time()}
			for _, id := range had {
				m.heard[id] = true
			}
		}
	}
	var ids []launchid.ID
	for _, uid := range plan.Anew {
		ids = append(ids, m.cache[uid].Launch)
	}
	m.launch(plan.Anew, ids)
}

// end terminates an instance.
func (m *model) end(id string) { m.machines[id].Ending = true }

// clean lets claims go: those that are deleted, with their machines, and those whose machines have ended.
func (m *model) clean() {
	for _, uid := range slices.Sorted(maps.Keys(m.claims)) {
		c := m.claims[uid]
		switch {
		case c.ProviderID != "" && m.machines[c.ProviderID].Ending:
			delete(m.claims, uid)
		case c.ProviderID != "" && c.Deleting:
			m.end(c.ProviderID)
			delete(m.claims, uid)
		case c.Deleting && m.now >= m.removeBy[uid]:
			delete(m.claims, uid)
		}
	}
}

// collect ends orphans. None of them may be a machine that a claim names, or of a launch of which a claim has none.
func (m *model) collect() {
	var running []launchid.Instance
	for _, i := range m.shown(false) {
		if !i.Ending {
			running = append(running, i)
		}
	}
	for _, id := range launchid.Orphans(m.list(), running, m.tries, m.time()) {
		for _, c := range m.claims {
			if c.ProviderID == id {
				m.t.Fatalf("%s is ended and is the machine of %s", id, c.UID)
			}
			if c.ProviderID == "" && c.Launch == m.machines[id].Launch {
				m.t.Fatalf("%s is ended and %s of its launch waits", id, c.UID)
			}
		}
		m.end(id)
	}
}

// step is ten seconds of the controller's life.
func (m *model) step() {
	m.read(false)
	var uids []string
	for _, c := range m.list() {
		if c.Launch == "" && !c.Deleting {
			uids = append(uids, c.UID)
		}
	}
	m.launch(uids, nil)
	m.recover()
	m.clean()
	m.now += 10 * time.Second
	if m.now%(2*time.Minute) == 0 {
		m.collect()
	}
}

// E-36 to E-38, as a law: for any reaction to a repeated token, late instances, lost answers and crashes of the
// controller, no instance is ever the machine of two claims, and none that a claim names is collected. After the
// trouble each claim has a machine of its own and no machine is without a claim.
func TestNoLaunchIsLostAndNoneIsDouble(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			t: t, trouble: true, lag: rapid.IntRange(0, 120).Draw(t, "most lag"),
			behaviour: rapid.IntRange(0, behaviours-1).Draw(t, "behaviour"),
			machines:  map[string]*machine{}, tokens: map[launchid.ID][]string{}, claims: map[string]*stored{},
			removeBy: map[string]time.Duration{},
		}
		m.forget()
		created := 0
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 2).Draw(t, "claims") {
				uid := fmt.Sprintf("c%03d", created)
				created++
				m.claims[uid] = &stored{Claim: launchid.Claim{UID: uid, Name: "name-" + uid}, version: 1, read: m.now}
			}
			if len(m.claims) > 0 && m.chance(15, "delete") {
				c := m.claims[rapid.SampledFrom(slices.Sorted(maps.Keys(m.claims))).Draw(t, "deleted")]
				c.version++
				if c.Deleting = true; m.removeBy[c.UID] == 0 {
					m.removeBy[c.UID] = m.now + 3*time.Minute
				}
			}
			m.step()
		}
		m.trouble = false
		for range 60 { // ten minutes
			m.step()
		}
		m.healed()
	})
}

// healed asserts that claims and running machines are one to one.
func (m *model) healed() {
	named := map[string]bool{}
	for _, c := range m.claims {
		if c.ProviderID == "" || m.machines[c.ProviderID].Ending || named[c.ProviderID] {
			m.t.Fatalf("%+v has no machine of its own", *c)
		}
		named[c.ProviderID] = true
	}
	for id, one := range m.machines {
		if !one.Ending && !named[id] {
			m.t.Fatalf("%+v is nobody's", *one)
		}
	}
}
