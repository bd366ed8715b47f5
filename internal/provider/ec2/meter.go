package ec2

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// Names of shared calls for a [Meter].
const (
	CallFleet     = "create_fleet"
	CallDescribe  = "describe_instances"
	CallTerminate = "terminate_instances"
)

// Meter counts events for metrics (E-62). It must not block.
type Meter interface {
	// Gathered counts one call for several asks. waited is how long the first of them had waited.
	Gathered(call string, asks int, waited time.Duration)
	// LaunchRefused counts a refused launch in a pool. zoneID is "" when unknown; code is EC2's.
	LaunchRefused(pool offering.Pool, zoneID, code string)
	// EndRefused counts a refusal to end a machine. zoneID is "" when unknown.
	EndRefused(zone, zoneID string)
	// Heard counts a message of an interruption queue, read at a time.
	Heard(message queue.Message, at time.Time)
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Gathered(string, int, time.Duration)         {}
func (noMeter) LaunchRefused(offering.Pool, string, string) {}
func (noMeter) EndRefused(string, string)                   {}
func (noMeter) Heard(queue.Message, time.Time)              {}

// gathered returns a function that reports calls of a name to the meter.
func (p *Provider) gathered(call string) func(asks int, waited time.Duration) {
	return func(asks int, waited time.Duration) { p.config.Meter.Gathered(call, asks, waited) }
}

// countRefused counts refused launches: each pool once. A refusal without pools counts as a pool without type and
// zone.
func (p *Provider) countRefused(o *order, list ...launch.Refused) {
	for _, r := range list {
		counted := map[offering.Pool]bool{}
		for _, pool := range r.Pools {
			if key := o.pool(pool, r.CapacityType); !counted[key] {
				counted[key] = true
				p.config.Meter.LaunchRefused(key, p.zoneID(key.Zone), r.Code)
			}
		}
		if len(r.Pools) == 0 {
			p.config.Meter.LaunchRefused(offering.Pool{CapacityType: r.CapacityType}, "", r.Code)
		}
	}
}

// countEnd counts that EC2 refused to end a machine. A machine that is gone is no refusal, nor is a caller that gave
// up.
func (p *Provider) countEnd(providerID string, err error) {
	if err == nil || errors.Is(err, provider.ErrNotFound) || refusal.Of(err).Code == "" {
		return
	}
	zone, _, _ := machines.ParseProviderID(providerID)
	p.config.Meter.EndRefused(zone, p.zoneID(zone))
}

// zoneID returns the ID of a zone in which a class has a subnet, "" for others.
func (p *Provider) zoneID(zone string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.zoneIDs[zone]
}

// Offered is the price and the availability of a type in a zone, for all classes together.
type Offered struct {
	Type, Zone, CapacityType string
	Price                    resources.Money // per hour
	Available                bool
}

// Dollars returns the price per hour; false when unknown.
func (o Offered) Dollars() (perHour float64, known bool) {
	return o.Price.Dollars(), o.Price != resources.Unpriced
}

// Size is the CPU and memory of a type.
type Size struct {
	Type  string
	CPU   int64 // millicores
	Bytes int64 // of memory
}

// OnOffer returns the contents of the node classes' catalogues, as planning last saw them, ordered by type, zone and
// capacity type. An offering of several classes or reservations counts as one: available if one of them is, at the
// lowest price.
func (p *Provider) OnOffer() ([]Offered, []Size) {
	p.making.Lock()
	made := slices.Collect(maps.Values(p.made))
	p.making.Unlock()
	type place struct{ kind, zone, capacityType string }
	offered, sizes := map[place]Offered{}, map[string]Size{}
	for _, k := range made {
		for _, t := range k.result.Catalog.Types {
			size := Size{t.Name, t.Capacity[resources.NameCPU], t.Capacity[resources.NameMemory]}
			size.Bytes = max(size.Bytes, sizes[t.Name].Bytes)
			sizes[t.Name] = size
			for _, o := range t.Offerings {
				at := place{t.Name, o.Zone, o.CapacityType}
				known, found := offered[at]
				if found {
					o.Price, o.Available = min(o.Price, known.Price), o.Available || known.Available
				}
				offered[at] = Offered{t.Name, o.Zone, o.CapacityType, o.Price, o.Available}
			}
		}
	}
	list := slices.SortedFunc(maps.Values(offered), func(a, b Offered) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone),
			cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return list, slices.SortedFunc(maps.Values(sizes), func(a, b Size) int { return cmp.Compare(a.Type, b.Type) })
}

// Forget drops the cached catalogue of a class that is gone, by its name.
func (p *Provider) Forget(class string) {
	p.making.Lock()
	defer p.making.Unlock()
	delete(p.made, class)
}
