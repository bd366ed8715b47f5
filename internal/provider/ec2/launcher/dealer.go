package launcher

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// This file keeps two processes from giving one machine to two claims (E-38). Machines of a launch for several claims
// have no names, and EC2 may show different machines to different processes. So only one process at a time hands out
// the machines of a launch: the one whose mark is on its claims.
//
//   - A process that launches writes the mark with the launch.
//   - A process that finds another's mark, and sees machines, first writes its own mark on each claim that may still
//     get one, provided that the claim has not changed since it was read. Only then it hands out machines.
//   - A process that writes a machine on a claim tests that its mark is still on the claim ([Machine]).
//
// Why this is enough: assume that P writes machine m on claim c, and Q writes it on d, both claims of one launch. At
// the end c has P's mark and d has Q's. If each had marked both claims, then Q marked c before P did, and P marked d
// before Q did. But each reads all claims before its first mark, and its write fails on a claim that was marked since.
// So one of them got no further. If P did not mark d, there are two cases. Either d had its machine when P read it;
// then P knows that m is taken. Or d did not have the launch yet; then somebody was still writing the launch on its
// claims. In this case P counted too few claims of the launch, and marked all that could still get it.

// mark returns a new, unique mark.
func (l *Launcher[R]) mark() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks++
	return fmt.Sprintf("%s-%d", l.self, l.marks)
}

// owns reports whether a mark is one of this process.
func (l *Launcher[R]) owns(mark string) bool { return strings.HasPrefix(mark, l.self+"-") }

// bears returns the claim's mark as far as this process knows: the one that was read, or the one it has written since.
// l.mu is held.
func (l *Launcher[R]) bears(claim launchid.Claim) string {
	if own := l.own[claim.UID]; own != "" && claim.Dealer == l.replaced[claim.UID] {
		return own
	}
	return claim.Dealer
}

// checkMark forgets the handed-out machines of the claim's launch if the claim now has another process' mark. l.mu is
// held.
func (l *Launcher[R]) checkMark(claim launchid.Claim) {
	if launch := l.launchOf(claim); l.held[launch] && !l.owns(l.bears(claim)) {
		l.release(launch)
	}
}

// machineOf returns the machine that was handed out to a claim; the zero value for none. l.mu is held.
func (l *Launcher[R]) machineOf(claim launchid.Claim) Machine {
	dealt, has := l.dealt[claim.UID]
	switch {
	case !has:
		return Machine{}
	case !dealt.launch.Shared():
		return Machine{ProviderID: dealt.providerID}
	case !l.owns(l.bears(claim)): // our mark may not have been written
		return Machine{}
	}
	return Machine{ProviderID: dealt.providerID, Mark: l.bears(claim)}
}

// hold notes that all claims of a launch have a mark of this process.
func (l *Launcher[R]) hold(launch launchid.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[launch] = true
}

// wrote notes that this process has written a mark on a claim; was is the claim before that. l.mu is held.
func (l *Launcher[R]) wrote(mark string, was launchid.Claim) {
	l.own[was.UID] = mark
	if !l.owns(was.Dealer) {
		l.replaced[was.UID] = was.Dealer
	}
}

// dealOut gives machines to the claims that which accepts, as far as this process may. l.mu is held.
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

// marksOf returns, for machines of launches for several claims, the mark that a claim needs to name the machine; see
// [Owners]. l.mu is held.
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

// takeOverFor takes over those of the launches that belong to other processes, if they have machines to hand out. It
// returns the current claims.
func (l *Launcher[R]) takeOverFor(ctx context.Context, claims []launchid.Claim, machines []launchid.Instance,
	launches []launchid.ID) (
	[]launchid.Claim, error,
) {
	l.mu.Lock()
	// nobody asks for a claim that is being deleted: only here we see that others have taken over
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
// then. After an error only some claims' marks may have changed; calling again is right.
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
		if !l.owns(claim.Dealer) { // whatever its launch: another process has handed that out meanwhile
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
	for _, claim := range claims { // other searches under way may have read an older state
		if claim.ProviderID != "" && slices.Contains(launches, claim.Launch) {
			l.deal(claim.UID, claim.Launch, claim.ProviderID, l.clock.Now())
		}
	}
	return claims, nil
}

// takers returns the claims that may get a machine of these launches: the claims of the launches that have none. If a
// launch has fewer claims than it was made for, these are also all claims on which it may still be written.
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

// release forgets the handed-out machines of a launch: another process does that now, or it must be done again.
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
