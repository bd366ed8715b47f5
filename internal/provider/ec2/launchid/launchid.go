// Package launchid makes launches safe against lost answers (E-36 to E-38). A launch has an id that is written on its
// claims before EC2 is called. EC2 gets it as client token, and as a tag on everything it creates. So after a crash, a
// process can see what was requested, find the result, and repeat the request without getting more.
//
//   - [New] returns an id.
//   - [Recover] says what to do for claims that have no machine of their launch.
//   - [Orphans] returns the instances that nobody will ever want.
//
// It is pure: time and all observations are parameters. It is not certain what EC2 does with a client token that it
// has seen before. The package works with each of these: the first answer again; an answer without instances; a
// refusal because something else differs; and, for servers without tokens, a second launch.
package launchid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Key is the annotation of claims, and the tag of fleets, instances and volumes, with the id.
const Key = "joiner.sh/launch"

// DealerKey is the annotation of claims that says who hands out the machines of their launch: a unique mark of a
// process. Only the process whose mark is on a claim may give it a machine of a launch for several claims (E-38).
const DealerKey = "joiner.sh/launch-dealer"

// Longest is the maximum length of a client token of EC2. It must be ASCII.
const Longest = 64

// ClaimKey is the tag with the name of an instance's claim, as in Karpenter.
const ClaimKey = karpenterv1.Group + "/nodeclaim"

const prefix = "joiner-"

// ID identifies a launch.
type ID string

// New returns the id of a launch for claims: a hash of their UIDs, in any order, and of the round, then their number
// and the round. The round distinguishes launches for the same claims; the first is 0. The id has the number because a
// repeated launch needs the same one, and claims may be gone by then.
func New(uids []string, round int) ID {
	sorted := slices.Sorted(slices.Values(uids))
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", strings.Join(sorted, "\n"), round))
	return ID(fmt.Sprintf("%s%s-%d-%d", prefix, hex.EncodeToString(sum[:16]), len(sorted), round))
}

// Parse returns the number of claims and the round. ok is false for an id that is not from New.
func (id ID) Parse() (count, round int, ok bool) {
	rest, ours := strings.CutPrefix(string(id), prefix)
	parts := strings.Split(rest, "-")
	if !ours || len(id) > Longest || len(parts) != 3 || len(parts[0]) != 32 {
		return 0, 0, false
	}
	count, err := strconv.Atoi(parts[1])
	if err != nil || count < 1 {
		return 0, 0, false
	}
	round, err = strconv.Atoi(parts[2])
	if err != nil || round < 0 {
		return 0, 0, false
	}
	return count, round, true
}

// Shared reports whether the launch may be for more than one claim, so that somebody must hand out its machines. It is
// true for an id that is not from New.
func (id ID) Shared() bool {
	count, _, ok := id.Parse()
	return id != "" && (!ok || count > 1)
}

// Tags returns the tags for everything that a launch for claims of these names creates. For a single claim they
// include its name. Other machines get theirs once they have registered.
func Tags(id ID, claims []string) map[string]string {
	tags := map[string]string{Key: string(id)}
	if len(claims) == 1 {
		tags[ClaimKey] = claims[0]
	}
	return tags
}

// NextRound returns the round of the next launch for claims with these ids.
func NextRound(ids []ID) int {
	next := 0
	for _, id := range ids {
		if _, round, ok := id.Parse(); ok {
			next = max(next, round+1)
		}
	}
	return next
}
