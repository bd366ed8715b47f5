package launcher

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// This file keeps two processes from giving one machine to two claims (E-38). Machines of a launch for several claims
// bear no names, and EC2 may show one process other machines than the next. So one process at a time hands out the
// machines of a launch: the one whose mark its claims bear.
//
//   - Whoever launches writes the mark with the launch.
//   - Whoever finds another's mark, and sees machines, writes its own on each claim that may still get one, provided
//     that the claim is as it was read. Only then it hands out.
//   - Whoever writes a machine on a claim tests that the claim bears its mark still ([Machine]).
//
// Why that is enough: say P writes machine m on claim c, and Q writes it on d, both of one launch. At the end c bore
// P's mark and d bore Q's. Had each marked both claims, then Q marked c before P did, and P marked d before Q did. But
// each reads all claims before its first mark, and a mark that was written since refuses its own; so one of them got
// no further. If P did not mark d, then d had its machine when P read it, and P knows that m is taken. Or d was not
// yet of the launch when P read it; then somebody was still writing the launch on its claims, P counted too few of
// them, and marked all that could still become one.

// mark returns a mark that nobody has made before.
func (l *Launcher[R]) mark() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks++
	return fmt.Sprintf("%s-%d", l.self, l.marks)
}

// owns reports whether a mark is one of this process.
func (l *Launcher[R]) owns(mark string) bool { return strings.HasPrefix(mark, l.self+"-") }

// bears returns the mark that a claim bears as far as this process knows: what was read, or what it has written since.
// l.mu is held.
func (l *Launcher[R]) bears(claim launchid.Claim) string {
	if own := l.own[claim.UID]; own != "" && claim.Dealer == l.replaced[claim.UID] {
		return own
	}
	return claim.Dealer
}

// checkMark forgets what was handed out of the claim's launch if the claim bears another process' mark by now. l.mu is
// held.
func (l *Launcher[R]) checkMark(claim launchid.Claim) {
	if launch := l.launchOf(claim); l.held[launch] && !l.owns(l.bears(claim)) {
		l.release(launch)
	}
}

// machineOf returns what was handed out to a claim; the zero value for nothing. l.mu is held.
func (l *Launcher[R]) machineOf(claim launchid.Claim) Machine {
	dealt, has := l.dealt[claim.UID]
	switch {
	case !has:
		return Machine{}
	case !dealt.launch.Shared():
		return Machine{ProviderID: dealt.providerID}
	case !l.owns(l.bears(claim)): // a mark that is not known to have been written
		return Machine{}
	}
	return Machine{ProviderID: dealt.providerID, Mark: l.bears(claim)}
}

// hold notes that all claims of a launch bear a mark of this process.
func (l *Launcher[R]) hold(launch launchid.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[launch] = true
}

// wrote notes a mark on a claim that was read as it was before. l.mu is held.
func (l *Launcher[R]) wrote(mark string, was launchid.Claim) {
	l.own[was.UID] = mark
	if !l.owns(was.Dealer) {
		l.replaced[was.UID] = was.Dealer
	}
}

// dealOut gives machines to those of the claims that which names, as far as this process may. l.mu is held.
func (l *Launcher[R]) dealOut(claims []launchid.Claim, take map[string]string, which func(launchid.Claim) bool) {
	for _, claim := range claims {
		launch := l.launchOf(claim)
		if id := take[claim.UID]; id != "" && which(claim) && l.mayDeal(launch) {
			l.deal(claim.UID, launch, id, l.clock.Now())
		}
	}
}

// mayDeal reports whether this process may hand out machines of the launch. l.mu is held.
func (l *Launcher[R]) mayDeal(launch launchid.ID) bool { return !launch.Shared() || l.held[launch] }

// marksOf returns what claims have to bear that come to name machines of launches for several claims; see [Owners].
// l.mu is held.
func (l *Launcher[R]) marksOf(claims []launchid.Claim, machines []launchid.Instance, owners Owners) map[string]string {
	byUID := map[string]launchid.Claim{}
	for _, claim := range claims {
		byUID[claim.UID] = claim
	}
	marks := map[string]string{}
	for _, machine := range machines {
		claim := byUID[owners.Claims[machine.ProviderID]]
		if machine.Launch.Shared() && (machine.ClaimName == "" || machine.ClaimName != claim.Name) {
			marks[machine.ProviderID] = ""
			if given := l.machineOf(claim); given.ProviderID == machine.ProviderID {
				marks[machine.ProviderID] = given.Mark
			}
		}
	}
	return marks
}

// takeOverFor takes over those of the launches that other processes may hand out, if there is anything of them to hand
// out. It returns the claims, as they are by then.
func (l *Launcher[R]) takeOverFor(ctx context.Context, claims []launchid.Claim, machines []launchid.Instance,
	launches []launchid.ID) (
	[]launchid.Claim, error,
) {
	l.mu.Lock()
	// a claim that goes is not asked for by anybody: only here it shows that others have taken over
	for _, claim := range claims {
		if claim.ProviderID == "" {
			l.checkMark(claim)
		}
	}
	take := l.plan(claims, machines).Take
	var others []launchid.ID
	for _, claim := range claims {
		launch := l.launchOf(claim)
		if take[claim.UID] != "" && slices.Contains(launches, launch) && !l.mayDeal(launch) &&
			!slices.Contains(others, launch) {
			others = append(others, launch)
		}
	}
	l.mu.Unlock()
	if len(others) == 0 {
		return claims, nil
	}
	return l.takeOver(ctx, others)
}

// takeOver makes this process the one that hands out the machines of these launches. It returns all claims as they are
// by then. After an error only some claims' marks have changed, and asking again is right.
func (l *Launcher[R]) takeOver(ctx context.Context, launches []launchid.ID) ([]launchid.Claim, error) {
	mark := l.mark()
	var marked []launchid.Claim
	claims, err := l.ports.Mark(ctx, mark, func(claims []launchid.Claim) []launchid.Claim {
		marked = takers(claims, launches)
		return marked
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, claim := range marked {
		if !l.owns(claim.Dealer) { // of whatever launch it is: somebody else has handed that out in the meantime
			l.release(claim.Launch)
		}
		if err == nil {
			l.wrote(mark, claim)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("taking over %d launches: %w", len(launches), err)
	}
	for _, launch := range launches {
		l.release(launch)
		l.held[launch] = true
	}
	for _, claim := range claims { // other searches may be under way that have read an older state
		if claim.ProviderID != "" && slices.Contains(launches, claim.Launch) {
			l.deal(claim.UID, claim.Launch, claim.ProviderID, l.clock.Now())
		}
	}
	return claims, nil
}

// takers are the claims that may come to have a machine of these launches: those of the launches without one, and,
// where there are fewer of a launch than it was made for, all that it may still be written on.
func takers(claims []launchid.Claim, launches []launchid.ID) []launchid.Claim {
	var list []launchid.Claim
	of := map[launchid.ID]int{}
	for _, claim := range claims {
		of[claim.Launch]++
	}
	until := -1 // the highest round of a launch that may still be written
	for _, launch := range launches {
		if n, round, ok := launch.Parse(); ok && of[launch] < n {
			until = max(until, round)
		}
	}
	for _, claim := range claims {
		if claim.ProviderID == "" && (slices.Contains(launches, claim.Launch) || round(claim.Launch) < until) {
			list = append(list, claim)
		}
	}
	return list
}

// release forgets what was handed out of a launch: somebody else does that now, or it has to be done anew.
func (m *memory) release(launch launchid.ID) {
	for uid, dealt := range m.dealt {
		if dealt.launch == launch {
			delete(m.owner, dealt.providerID)
			delete(m.dealt, uid)
		}
	}
	delete(m.held, launch)
	delete(m.over, launch)
}
