// Package launchid makes launches safe against lost answers (E-36 to E-38). A launch has an id that is written on
// its claims before EC2 is called. EC2 gets it as client token, and as tag on all that it makes. So whoever comes
// after a crash can see what was asked for, find what came of it, and ask again without getting more.
//
//   - [New] makes an id.
//   - [Recover] says what to do for claims whose launch has brought nothing that they know of.
//   - [Orphans] says which instances nobody will ever want.
//
// It is pure: time and everything that was seen are parameters. What EC2 does with a client token that it has seen
// before is not known for certain; the package is right for each of: the first answer again; an answer without
// instances; a refusal because something else differs; and, for servers that know no tokens, a second launch.
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

// Key is the annotation of claims, and the tag of fleets, instances and volumes, that holds the id.
const Key = "joiner.sh/launch"

// DealerKey is the annotation of claims that says who hands out the machines of their launch: a mark that a process
// makes once. Only the process whose mark a claim bears may name a machine of a launch for several claims on it
// (E-38).
const DealerKey = "joiner.sh/launch-dealer"

// Longest is how many characters EC2 takes as a client token. They have to be ASCII.
const Longest = 64

// ClaimKey is the tag with the name of an instance's claim, as Karpenter has it.
const ClaimKey = karpenterv1.Group + "/nodeclaim"

const prefix = "joiner-"

// ID identifies a launch.
type ID string

// New returns the id of a launch for claims: a hash of their UIDs, in any order, and of the round, then their number
// and the round. The round tells launches for the same claims apart; the first is 0. The number is in the id since
// it has to be the same when the launch is repeated, and claims may be gone by then.
func New(uids []string, round int) ID {
	sorted := slices.Sorted(slices.Values(uids))
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", strings.Join(sorted, "\n"), round))
	return ID(fmt.Sprintf("%s%s-%d-%d", prefix, hex.EncodeToString(sum[:16]), len(sorted), round))
}

// Parse returns the number of claims and the round. ok is false for an id that New has not made.
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

// Shared reports whether machines of the launch may be of more than one claim, so that somebody has to hand them out.
// Of an id that New has not made nobody knows.
func (id ID) Shared() bool {
	count, _, ok := id.Parse()
	return id != "" && (!ok || count > 1)
}

// Tags returns the tags of all that a launch for claims of these names makes. Where it is one claim its name is
// known already; others get theirs once they have registered.
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
