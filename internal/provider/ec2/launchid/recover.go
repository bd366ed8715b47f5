package launchid

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// LookFor is how long instances of a launch are looked for after its repetition has brought too few, before its
// claims are launched for anew. What turns up later is an orphan.
const LookFor = time.Minute

// Young is how old an instance has to be before it can be an orphan: by then whoever reads claims has read their
// launch.
const Young = provider.ClockSkew + provider.ListLag

// Claim is a NodeClaim as it was read, which may be a little while ago: whoever writes what [Recover] says has to
// name the version that was read, and a process that takes over has to read all claims first.
type Claim struct {
	UID, Name  string
	Launch     ID     // "" before the first launch
	Dealer     string // the mark of whoever hands out the machines of its launch, "" for nobody's
	ProviderID string // "" while it has no machine
	// Deleting says that the claim goes. It still takes a machine that is its own, so that this one ends with it.
	Deleting bool
}

// Instance is an instance that EC2 shows, or that the answer of a launch names.
type Instance struct {
	ProviderID string
	Launch     ID
	// ClaimName is the value of its tag karpenter.sh/nodeclaim, "" when it has none. Ours have it when they were
	// launched for one claim, else once they have registered; Karpenter's once they have registered.
	ClaimName string
	// DealtTo is the UID of the claim that this process has given the instance to, by a launch or since Recover said
	// so; "" when it has given it to none. It counts as long as what was read of the claim may be older.
	DealtTo  string
	Launched time.Time
	Ending   bool // it is shutting down, or terminated
}

// Try is what this process has done about a launch. It is lost with the process: then the launch is repeated once
// more.
type Try struct {
	// Busy says that a call for it is under way, or that what it brought is not written yet.
	Busy bool
	// Repeated is when the repetition was answered, whatever the answer was but trouble of AWS; zero before that.
	Repeated time.Time
}

// Repeat is a launch to be asked for again, with its id as token, as it was asked for the first time.
type Repeat struct {
	Launch ID
	Count  int // as many instances as the first time
}

// Look is a launch whose instances may still turn up.
type Look struct {
	Launch ID
	Until  time.Time
}

// Plan is what to do for claims that have no machine. The lists are ordered.
type Plan struct {
	Take   map[string]string // claim UID → provider ID of the instance that becomes its machine
	Repeat []Repeat
	Look   []Look
	// Anew are the UIDs of claims that need another launch, of a later round.
	Anew []string
}

// Recover says what to do for the claims that have no machine. One without a launch can only take an instance that
// bears its name. The others take instances of their launch that no claim has. For those that are left the launch is
// repeated, once; then instances are looked for until LookFor is over; then the claims are launched for anew.
// instances are all that EC2 shows of these launches, with those that repetitions have named.
func Recover(claims []Claim, instances []Instance, tries map[ID]Try, now time.Time) Plan {
	plan := Plan{Take: map[string]string{}}
	free := newFree(claims, instances)
	byLaunch := map[ID][]Claim{}
	for _, c := range inOrder(claims) {
		if c.ProviderID == "" && !tries[c.Launch].Busy {
			byLaunch[c.Launch] = append(byLaunch[c.Launch], c)
		}
	}
	for _, launch := range slices.Sorted(maps.Keys(byLaunch)) {
		left := free.deal(launch, byLaunch[launch], plan.Take)
		left = slices.DeleteFunc(left, func(c Claim) bool { return c.Deleting })
		if len(left) == 0 || launch == "" {
			continue
		}
		repeated := tries[launch].Repeated
		switch {
		case repeated.IsZero():
			plan.Repeat = append(plan.Repeat, Repeat{Launch: launch, Count: count(launch, claims)})
		case now.Before(repeated.Add(LookFor)):
			plan.Look = append(plan.Look, Look{Launch: launch, Until: repeated.Add(LookFor)})
		default:
			for _, c := range left {
				plan.Anew = append(plan.Anew, c.UID)
			}
		}
	}
	slices.Sort(plan.Anew)
	return plan
}

// count is how many instances a launch was for. The id says so; for one that New has not made the claims are
// counted, and EC2 refuses the token when that is wrong.
func count(launch ID, claims []Claim) int {
	if n, _, ok := launch.Parse(); ok {
		return n
	}
	n := 0
	for _, c := range claims {
		if c.Launch == launch {
			n++
		}
	}
	return n
}

// Orphans returns the provider IDs of the instances that are to be ended: no claim has them, and none of their
// launch is without a machine. Of two instances for one claim this is the one that the claim does not name (E-38).
// instances are those of this cluster that are running or on their way; the result is ordered. What is younger than
// Young, or of a launch that is busy, is left for the next time.
func Orphans(claims []Claim, instances []Instance, tries map[ID]Try, now time.Time) []string {
	free := newFree(claims, instances)
	waits, waitsByName, waitsByUID := map[ID]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range claims {
		if c.ProviderID == "" {
			waits[c.Launch], waitsByName[c.Name], waitsByUID[c.UID] = true, true, true
		}
	}
	delete(waits, "")
	delete(waitsByName, "")
	delete(waitsByUID, "")
	var orphans []string
	for _, i := range free.instances {
		young := now.Before(i.Launched.Add(Young)) || tries[i.Launch].Busy
		if !young && !waits[i.Launch] && !waitsByName[i.ClaimName] && !waitsByUID[i.DealtTo] {
			orphans = append(orphans, i.ProviderID)
		}
	}
	slices.Sort(orphans)
	return orphans
}

// free are the instances that no claim has.
type free struct {
	instances []Instance      // oldest first
	claims    map[string]bool // UIDs of those that exist
	names     map[string]bool // names of those that exist
}

func newFree(claims []Claim, instances []Instance) *free {
	f := &free{claims: map[string]bool{}, names: map[string]bool{}}
	taken := map[string]bool{}
	for _, c := range claims {
		taken[c.ProviderID], f.claims[c.UID], f.names[c.Name] = true, true, true
	}
	delete(f.claims, "")
	delete(f.names, "")
	had := func(i Instance) bool { return i.Ending || taken[i.ProviderID] }
	f.instances = slices.DeleteFunc(slices.Clone(instances), had)
	slices.SortFunc(f.instances, func(a, b Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), strings.Compare(a.ProviderID, b.ProviderID))
	})
	return f
}

// deal gives instances of a launch to claims of it, and returns the claims for which there is none. Those that were
// dealt out before, or bear a claim's name, are for that claim alone, as long as it exists.
func (f *free) deal(launch ID, claims []Claim, take map[string]string) (left []Claim) {
	give := func(claims []Claim, fits func(Claim, Instance) bool) (left []Claim) {
		for _, c := range claims {
			at := slices.IndexFunc(f.instances, func(i Instance) bool { return fits(c, i) })
			if at < 0 {
				left = append(left, c)
				continue
			}
			take[c.UID] = f.instances[at].ProviderID
			f.instances = slices.Delete(f.instances, at, at+1)
		}
		return left
	}
	left = give(claims, func(c Claim, i Instance) bool { return i.DealtTo == c.UID && c.UID != "" })
	left = give(left, func(c Claim, i Instance) bool {
		return c.Name != "" && i.ClaimName == c.Name && !f.claims[i.DealtTo]
	})
	return give(left, func(_ Claim, i Instance) bool {
		return launch != "" && i.Launch == launch && !f.claims[i.DealtTo] && !f.names[i.ClaimName]
	})
}

// inOrder returns the claims with those that stay first, then by UID: a machine is of more use to them.
func inOrder(claims []Claim) []Claim {
	going := func(c Claim) int {
		if c.Deleting {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(claims), func(a, b Claim) int {
		return cmp.Or(cmp.Compare(going(a), going(b)), strings.Compare(a.UID, b.UID))
	})
}
