package resolve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// placementFor is how long an answer holds: a group never changes its strategy, but it may be deleted.
const placementFor = 5 * time.Minute

// PlacementGroup is a placement group that a class selects (E-15). Before the first answer in this process, it has the
// fields of the selector and no strategy, so that a launch can name the group anyway.
type PlacementGroup struct {
	ID, Name   string
	Strategy   string // cluster, partition or spread
	Partitions int64  // 0 unless the strategy is partition

	state string
}

// askPlacements asks for the placement groups of all classes, each once.
func (r *Resolver) askPlacements(ctx context.Context, classes []*awsv1.EC2NodeClass) {
	wanted := map[string]awsv1.PlacementGroupSelector{}
	for _, class := range classes {
		if s := class.Spec.PlacementGroupSelector; s != nil {
			wanted[termKey(*s)] = *s
		}
	}
	holds := func(string, []PlacementGroup) time.Duration { return placementFor }
	for _, key := range r.knownPlacements.due(r.now(), slices.Collect(maps.Keys(wanted)), holds) {
		asked := r.now()
		found, err := r.listPlacements(ctx, wanted[key])
		if err != nil {
			r.knownPlacements.failed(key, r.now(), failureOf("ec2:DescribePlacementGroups", err))
		} else {
			r.knownPlacements.answered(key, asked, found)
		}
	}
}

// listPlacements asks for a group. There is no filter for ids, so EC2 refuses one that does not exist.
func (r *Resolver) listPlacements(ctx context.Context,
	s awsv1.PlacementGroupSelector) (found []PlacementGroup, err error) {
	in := &ec2.DescribePlacementGroupsInput{GroupIds: []string{s.ID}}
	if s.ID == "" {
		in = &ec2.DescribePlacementGroupsInput{
			Filters: []ec2types.Filter{{Name: new("group-name"), Values: []string{s.Name}}},
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := r.config.EC2.DescribePlacementGroups(ctx, in)
	if strings.HasPrefix(refusal.Of(err).Code, "InvalidPlacementGroup") {
		return nil, nil
	}
	if err != nil || out.PlacementGroups == nil {
		return nil, cmp.Or(err, errNoContent)
	}
	for _, g := range out.PlacementGroups {
		found = append(found, PlacementGroup{
			ID: value(g.GroupId), Name: value(g.GroupName), Strategy: string(g.Strategy),
			Partitions: int64(value(g.PartitionCount)), state: string(g.State),
		})
	}
	return found, nil
}

// judgePlacement decides the placement group of a class that selects one.
func (r *Resolver) judgePlacement(class *awsv1.EC2NodeClass, into *Result, now time.Time) {
	s := *class.Spec.PlacementGroupSelector
	a := r.knownPlacements.get(termKey(s))
	b := newBasis()
	b.add(a.state, placementFor)
	if !b.known {
		into.keep(PlacementGroupReady, r, class, b, now)
		into.Placement = &PlacementGroup{ID: s.ID, Name: s.Name}
		return
	}
	text := fmt.Sprintf("spec.placementGroupSelector (%s): the account has no such placement group in %s",
		termText(s.ID, s.Name, nil), r.config.Region)
	for _, g := range a.value {
		if g.state == string(ec2types.PlacementGroupStateAvailable) {
			into.Placement = &g
			into.add(met(PlacementGroupReady, ""), b, now)
			return
		}
		text = fmt.Sprintf("spec.placementGroupSelector: the placement group %s (%s) is %s, not available", g.ID,
			g.Name, g.state)
	}
	into.add(unmet(PlacementGroupReady, PlacementGroupNotFound, text), b, now)
}
