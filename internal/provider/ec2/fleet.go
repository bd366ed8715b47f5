package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// Fleet implements launcher.Ports with one call of CreateFleet. A certain refusal is an answer. Anything else is an
// error, and the launcher looks for what was launched.
func (p ports) Fleet(ctx context.Context, o *order, ask launcher.Ask) (launcher.Answer, error) {
	request := o.request
	request.ID, request.Count = ask.Launch, ask.Count
	var claims []string
	if ask.Claim != "" {
		claims = []string{ask.Claim}
	}
	request.Tags = maps.Clone(request.Tags)
	maps.Copy(request.Tags, launchid.Tags(ask.Launch, claims))
	if err := p.ensure(ctx, o); err != nil {
		return launcher.Answer{Refused: p.refusedCall(o, refusal.Of(err), err)}, nil
	}
	held, timely := p.hold(o, ask.Count), inTime(p.config.Clock, ask.NotAfter)
	out, err := p.config.Clients.EC2.CreateFleet(ctx, launch.Fleet(request), timely)
	if refused := refusal.Of(err); refused.Class == refusal.Template && p.again(ctx, o) == nil {
		out, err = p.config.Clients.EC2.CreateFleet(ctx, launch.Fleet(request), timely)
	}
	at := p.config.Clock.Now()
	if err != nil {
		p.free.End(held, at)
		refused := refusal.Of(err)
		p.countRefused(o, launch.Refused{Refusal: refused, CapacityType: request.CapacityType})
		if refused.Class != refusal.Server {
			return launcher.Answer{Refused: p.refusedCall(o, refused, err)}, nil
		}
		return launcher.Answer{}, err
	}
	came, refused := launch.Read(request, out)
	p.countRefused(o, refused...)
	var answer launcher.Answer
	var took []subnet.Took
	for _, i := range came {
		id := machines.ProviderID(i.Zone, i.ID)
		answer.Machines = append(answer.Machines, launchid.Instance{ProviderID: id, Launch: ask.Launch, Launched: at})
		took = append(took, subnet.Took{Machine: id, Subnet: i.Subnet, Need: o.needs[i.Type]})
		p.had(o, i, id)
	}
	p.free.End(held, at, took...)
	answer.Refused = p.refusedPools(o, refused) // the new machines may fill a zone
	return answer, nil
}

// had notes a machine that a launch has brought.
func (p *Provider) had(o *order, i launch.Instance, id string) {
	now := p.config.Clock.Now()
	pool := o.pool(i.Override, i.CapacityType) // the next catalogue, within a second, shows it
	p.shortages.Clear(pool)
	if group := pool.PlacementGroup; group != "" {
		zone := offering.SpreadZone(group, pool.Zone)
		p.shortages.Clear(zone)
		pool.PlacementGroup = ""
		p.shortages.Clear(pool)
		p.intoGroup(id, zone)
	}
	info := p.config.Types.Known().Types[i.Type]
	p.quotas.Had(i.Type, vcpus(info.VCpuInfo), i.CapacityType)
	if i.Reservation != "" {
		p.reservations.Took(i.Reservation, id, now)
		p.into(i.Reservation, id)
	}
	if _, known := p.recall(id); known { // a repeated answer; more is known by now
		return
	}
	p.remember(provider.Instance{
		ProviderID: id, ImageID: i.Image, Type: i.Type, Zone: i.Zone, CapacityType: i.CapacityType, Price: i.Price,
		Launched: now,
	})
}

// into notes the reservation into which a machine was launched.
func (p *Provider) into(reservation, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside[id] = reservation
}

// reservedIn returns the reservation of a machine: as launched, or else by the last listing. It is "" when unknown.
func (p *Provider) reservedIn(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.inside[id], p.lastSeen[id].Reservation)
}

// isOf reports whether an offering may be one of a reservation: it is of none, or the reservation is unknown ("").
func isOf(reservation string) func(catalog.Offering) bool {
	return func(o catalog.Offering) bool {
		id, _ := o.Labels.Get(offering.LabelReservationID).Single()
		return id == "" || reservation == "" || id == reservation
	}
}

// intoGroup notes a machine launched into a placement group, until it is listed.
func (p *Provider) intoGroup(id string, zone offering.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, listed := p.lastSeen[id]; !listed {
		p.spread[id] = zone
	}
}

// ensure creates the launch templates of an order, each once in this process.
func (p *Provider) ensure(ctx context.Context, o *order) error {
	for _, name := range slices.Sorted(maps.Keys(o.templates)) {
		if err := p.keeper.Ensure(ctx, o.templates[name]); err != nil {
			return fmt.Errorf("making launch template %s: %w", name, err)
		}
	}
	return nil
}

// again creates the templates of an order again, because EC2 does not know one any more.
func (p *Provider) again(ctx context.Context, o *order) error {
	for _, name := range slices.Sorted(maps.Keys(o.templates)) {
		p.keeper.Forget(name)
	}
	return p.ensure(ctx, o)
}

// hold reserves the addresses that a launch may take. Its machines count as those of the cheapest pool, which is what
// EC2 prefers: the dearest may need twenty times as many, and zones would be closed to other launches for nothing.
func (p *Provider) hold(o *order, count int) int64 {
	var subnets []string
	var need subnet.Need
	for i, override := range o.request.Overrides {
		if !slices.Contains(subnets, override.Subnet) {
			subnets = append(subnets, override.Subnet)
		}
		if i == 0 { // the cheapest
			need = o.needs[override.Type]
		}
	}
	return p.free.Begin(subnets, need, int64(count))
}

// refusedCall returns the error for the claims after the refusal of a whole call.
func (p *Provider) refusedCall(o *order, r refusal.Refusal, err error) error {
	switch {
	case r.Class == refusal.Throttle:
		return fmt.Errorf("%w: %w", provider.ErrThrottled, err)
	case r.Class == refusal.Server:
		return fmt.Errorf("AWS has trouble, and nothing was launched: %w", err)
	case elsewhere(r):
		return p.refusedPools(o,
			[]launch.Refused{{Refusal: r, CapacityType: o.request.CapacityType, Pools: o.request.Overrides, For: 1}})
	case r.Class == refusal.Rights:
		p.denied(o.class, text(r))
		return &provider.LaunchError{ConditionReason: ReasonUnauthorized, Message: text(r)}
	}
	return &provider.LaunchError{ConditionReason: wordOf(r.Code), Message: text(r)}
}

// elsewhere reports whether a refusal is about offerings, so that other pools may still have machines. By its code, a
// missing role for spot is about rights, but it does not block on-demand (E-43).
func elsewhere(r refusal.Refusal) bool { return r.Class.OfOfferings() || r.Code == quota.NoSpotRole }

// refusedPools notes refused pools, and returns the error for claims that got nothing; nil when nothing was refused.
func (p *Provider) refusedPools(o *order, list []launch.Refused) error {
	if len(list) == 0 {
		return nil
	}
	failure := &provider.InsufficientCapacityError{Asked: o.asked}
	var other error
	for _, r := range list {
		if !elsewhere(r.Refusal) {
			if other == nil || r.Class == refusal.Throttle {
				other = p.refusedCall(o, r.Refusal, fmt.Errorf("%s", text(r.Refusal)))
			}
			continue
		}
		if len(r.Pools) == 0 { // it names no pools: all of them count as refused
			r.Pools = o.request.Overrides
		}
		p.mark(o, r)
		for _, pool := range r.Pools {
			tried := provider.Offering{Type: pool.Type, Zone: pool.Zone, CapacityType: r.CapacityType}
			if !slices.Contains(failure.Tried, tried) {
				failure.Tried = append(failure.Tried, tried)
			}
		}
	}
	if len(failure.Tried) > 0 {
		return failure
	}
	return other
}

// mark notes refused pools, so that planning avoids them (E-41 to E-43).
func (p *Provider) mark(o *order, r launch.Refused) {
	defer p.changed()
	now := p.config.Clock.Now()
	r.Pools = p.inFullZones(o, r, now)
	var pools []offering.Pool
	for _, pool := range r.Pools {
		pools = append(pools, o.pool(pool, r.CapacityType))
	}
	if r.For > 0 && !quota.OfCapacityType(r.Code) { // EC2 did not say which of them it means
		p.shortages.Pause(pools, now)
		return
	}
	switch {
	case r.Class == refusal.Capacity:
		for _, pool := range pools {
			p.shortages.Note(pool, now)
		}
	case r.Class == refusal.Quota, r.Code == quota.NoSpotRole:
		for _, pool := range r.Pools {
			info := p.config.Types.Known().Types[pool.Type]
			event := p.quotas.Refused(quota.Refusal{Code: r.Code, Type: pool.Type, VCPUs: vcpus(info.VCpuInfo),
				CapacityType: r.CapacityType, Region: p.config.Region}, now)
			if event != nil {
				p.config.Told(Event{Class: o.class.Name, Reason: event.Reason, Message: event.Message})
			}
		}
	case r.Class == refusal.Subnet:
		for _, pool := range r.Pools {
			p.free.Full(pool.Subnet, now)
		}
	case r.Class == refusal.Reservation:
		for _, pool := range r.Pools {
			p.reservations.Empty(pool.Reservation, now)
			p.shortages.Note(o.pool(pool, r.CapacityType), now)
		}
	}
}

// inFullZones marks the zones in which the order's placement group is full, for a minute: a machine that ends makes
// room. It returns the pools of the other zones (E-15). EC2 does not name such zones, and we do not count other
// clusters' machines in the group. Pools in zones that are full because of these are marked one by one.
func (p *Provider) inFullZones(o *order, r launch.Refused, now time.Time) []launch.Override {
	most := o.placement.MostInZone()
	if most == 0 || r.Class != refusal.Capacity && r.Class != refusal.Quota || quota.OfCapacityType(r.Code) {
		return r.Pools
	}
	count := p.inGroup(o.placement.ID)
	return slices.DeleteFunc(slices.Clone(r.Pools), func(pool launch.Override) bool {
		full := count[pool.Zone] >= most
		if full {
			p.shortages.Pause([]offering.Pool{offering.SpreadZone(o.placement.ID, pool.Zone)}, now)
		}
		return full
	})
}

func text(r refusal.Refusal) string {
	if r.Code == "" {
		return r.Message
	}
	message, _, _ := strings.Cut(r.Message, " Encoded authorization failure message") // it differs in every answer
	return r.Code + ": " + message
}

// wordOf makes one word of an AWS code, which may have dots.
func wordOf(code string) string {
	if word := strings.ReplaceAll(code, ".", ""); word != "" {
		return word
	}
	return "LaunchFailed"
}

func vcpus(info *ec2types.VCpuInfo) int64 {
	if info == nil || info.DefaultVCpus == nil {
		return 0
	}
	return int64(*info.DefaultVCpus)
}
