package operator

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// ruleBoard is the board's state of the rule for NodeClaims.
type ruleBoard struct {
	wanted  bool    // a controller writes the rule
	latest  Reading // of the policy, whether or not the rule covers it
	written *writtenRule
	missing []string // parts of the rule that could not be written
}

// writtenRule is what this process last wrote the rule for.
type writtenRule struct {
	reading Reading
	classes []string
	leftOut merge.LeftOut // see admission.ReasonRuleTooLarge
}

func (w writtenRule) same(reading Reading, classes []string) bool {
	return w.reading.SameForWrappers(reading) && slices.Equal(w.classes, classes)
}

// changesRule reports whether a reading determines the rule: it is known what to apply, and the policy is valid.
func changesRule(reading Reading) bool {
	return reading.Known() && (reading.Policy == nil || len(merge.Check(reading.Policy)) == 0)
}

// Latest returns the latest reading of the policy, whether or not the rule for NodeClaims covers it.
func (b *Board) Latest() Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rule.latest
}

// RuleLeftOut returns what the rule for NodeClaims lacks, since it would be too large. Claims outside of its labels
// are only found afterwards; claims that refer to its node classes are refused.
func (b *Board) RuleLeftOut() merge.LeftOut {
	if written := b.ruleWritten(); written != nil {
		return written.leftOut
	}
	return merge.LeftOut{}
}

// ruleMissing returns the parts of the rule that could not be written.
func (b *Board) ruleMissing() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rule.missing
}

// setRuleMissing stores the parts of the rule that could not be written, if any, and reports whether that is news.
func (b *Board) setRuleMissing(missing ...string) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news = !slices.Equal(b.rule.missing, missing)
	b.rule.missing = missing
	return news
}

func (b *Board) wantRule() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rule.wanted = true
}

// ruleWritten returns what this process wrote last, nil if nothing yet.
func (b *Board) ruleWritten() *writtenRule {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rule.written
}

// wroteRule remembers what was written.
func (b *Board) wroteRule(written writtenRule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rule.written = &written
}

// decided returns the reading that this process last wrote the rule for.
func (b *Board) decided() (Reading, bool) {
	if written := b.ruleWritten(); written != nil {
		return written.reading, true
	}
	return Reading{}, false
}

// cover lets a reading count, unless a later one means something else, and reports whether that is news.
func (b *Board) cover(reading Reading) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.rule.latest.SameForWrappers(reading) {
		return false // whoever set the later one has woken the controller again
	}
	news = !b.reading.SameForWrappers(b.rule.latest)
	b.reading = b.rule.latest
	return news
}

// ruledAgainAfter is when to try again a node class that waits for the rule.
const ruledAgainAfter = 200 * time.Millisecond

// AfterRule returns a kind whose node classes are written only once the rule for NodeClaims has them.
func AfterRule(kind Kind, board *Board) Kind {
	plain := kind.Make
	kind.Make = func(ctx context.Context, policy *hypershiftv1beta1.AutoNodePolicy,
		wrapper client.Object) (Made, error) {
		made, err := plain(ctx, policy, wrapper)
		written, name := board.ruleWritten(), wrapper.GetName()
		switch {
		case made.Product == nil:
		case written == nil || !slices.Contains(written.classes, name):
			made.Product, made.Missing, made.RetryAfter = nil,
				"the rule for NodeClaims does not have this node class yet", ruledAgainAfter
		case slices.Contains(written.leftOut.Classes, name): // the rule's writer wakes it when there is room
			made.Product = nil
			made.Problems = append(made.Problems, merge.Problem{Reason: hypershiftv1beta1.ReasonRuleTooLarge,
				Field:   "metadata.name",
				Message: "the rule for NodeClaims has no room for this node class: delete others, or take shorter names"})
		}
		return made, err
	}
	return kind
}
