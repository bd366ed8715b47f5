package launchid

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// LookFor is how long to look for instances of a launch after its repetition has brought too few, before its claims
// get a new launch. An instance that appears later is an orphan.
const LookFor = time.Minute

// Young is the minimum age of an orphan: by then every process has read the launches of claims.
const Young = provider.ClockSkew + provider.ListLag

// Claim is a NodeClaim as it was read, maybe a moment ago. So whoever writes the result of [Recover] must test the
// version that was read, and a process that takes over must read all claims first.
type Claim struct {
	UID, Name  string
	Launch     ID     // "" before the first launch
	Dealer     string // the mark of who hands out the machines of its launch, "" for none
	ProviderID string // "" while it has no machine
	// Deleting means that the claim is being deleted. It still takes its own machine, so that the machine ends with
	// it.
	Deleting bool
}

// Instance is an instance that EC2 lists, or that the answer of a launch names.
type Instance struct {
	ProviderID string
	Launch     ID
	// ClaimName is the value of its tag karpenter.sh/nodeclaim, "" when it has none. Ours have it from the launch if
	// that was for one claim. Others of ours, and Karpenter's, have it once they have registered.
	ClaimName string
	// DealtTo is the UID of the claim to which this process has given the instance, by a launch or by Recover; "" for
	// none. It is needed because the claim that was read may be older.
	DealtTo  string
	Launched time.Time
	Ending   bool // it is shutting down, or terminated
}

// Try is what this process has done for a launch. After a restart it is lost, and the launch is repeated once more.
type Try struct {
	// Busy means that a call for it is under way, or that its result is not noted yet.
	Busy bool
	// Repeated is when the repetition was answered, unless the answer was trouble of AWS; zero before that.
	Repeated time.Time
}

// Repeat is a launch to request again, with its id as token, exactly as the first time.
type Repeat struct {
	Launch ID
	Count  int // the same as the first time
}

// Look is a launch whose instances may still appear.
type Look struct {
	Launch ID
	Until  time.Time
}

// Plan is what to do for claims without a machine. The lists are ordered.
type Plan struct {
	Take   map[string]string // claim UID → provider ID of the instance that becomes its machine
	Repeat []Repeat
	Look   []Look
	// Anew are the UIDs of claims that need another launch, of a later round.
	Anew []string
}

// Recover returns what to do for claims without a machine. A claim without a launch can only take an instance with its
// name. The others take free instances of their launch. For the remaining claims the launch is repeated once. Then
// instances are looked for until LookFor is over. Then the claims get a new launch. instances are all that EC2 lists
// of these launches, with those that repetitions have named.
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

// count returns how many instances a launch was for. The id says so. For an id that is not from New, the claims are
// counted; EC2 refuses the token if that is wrong.
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

// Orphans returns the provider IDs of the instances to end, sorted: no claim has them, and no claim of their launch
// lacks a machine. Of two instances for one claim it is the one that the claim does not name (E-38). instances are
// those of this cluster that are running or starting. Instances younger than Young, or of a busy launch, are left for
// the next time.
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
	instances []Instance      // the oldest first
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

// deal gives instances of a launch to its claims, and returns the claims without one. An instance that was dealt out
// before, or has a claim's name, is only for that claim while the claim exists.
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

// inOrder returns the claims by UID, with those that are being deleted last: the others need a machine more.
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
