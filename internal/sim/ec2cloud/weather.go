package ec2cloud

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// Weather is the faults of EC2 itself. See [Fair] for none.
type Weather struct {
	// Tokens is what EC2 does with a client token that it knows: replay, fleet-only, mismatch or ignore (E-37); "" is
	// replay.
	Tokens string
	// LateShare is the share of new instances that are shown late, by up to LateMost.
	LateShare float64
	LateMost  time.Duration
	// Rate bounds the calls per second for launching, for ending and for describing; 0 is no bound.
	Rate float64
	// VCPUs bounds the running vCPUs, on-demand and spot each; 0 is no bound.
	VCPUs int
	// Room bounds the machines of each combination of type, zone and capacity type; negative is no bound.
	Room int
	// Addresses is how many addresses each subnet has left from now on; negative is plenty.
	Addresses int
}

// Fair is weather in which nothing goes wrong.
func Fair() Weather { return Weather{Room: -1, Addresses: -1} }

// SetWeather changes the faults from now on. Launched machines keep their delays.
func (a *Account) SetWeather(w Weather) error {
	a.weather = w
	return a.apply()
}

// Weather returns the current faults.
func (a *Account) Weather() Weather { return a.weather }

// RunOut sets the markets that have no capacity.
func (a *Account) RunOut(markets cloud.Market) error {
	a.out = markets
	return a.apply()
}

// Out returns the markets that have no capacity.
func (a *Account) Out() cloud.Market { return a.out }

// plenty is the number of addresses of a subnet that is not full.
const plenty = 60_000

func (a *Account) apply() error {
	w := a.weather
	f := ec2test.Faults{Seed: a.config.Seed, Tokens: ec2test.TokenBehaviour(w.Tokens), FreeAddresses: map[string]int{}}
	f.Visibility = ec2test.Visibility{Share: w.LateShare, Most: metav1.Duration{Duration: w.LateMost}}
	if w.Rate > 0 {
		f.Throttle = map[string]ec2test.Bucket{}
		for _, action := range []string{"CreateFleet", "TerminateInstances", "DescribeInstances"} {
			f.Throttle["ec2:"+action] = ec2test.Bucket{Rate: w.Rate, Burst: 2 * w.Rate}
		}
	}
	for _, capacityType := range []string{"spot", "on-demand"} {
		if w.VCPUs > 0 {
			f.Quotas = append(f.Quotas, ec2test.Quota{Group: "standard", CapacityType: capacityType, VCPUs: w.VCPUs})
		}
	}
	for _, market := range a.out.Names() {
		f.Pools = append(f.Pools, ec2test.Pool{Type: "*", Zone: Zone(market[0]), CapacityType: market[1],
			Code: "InsufficientInstanceCapacity"})
	}
	if w.Room >= 0 {
		for _, kind := range types() {
			for _, zone := range []string{Zone("zone-a"), Zone("zone-b")} {
				for _, capacityType := range []string{"spot", "on-demand"} {
					f.Pools = append(f.Pools, ec2test.Pool{Type: kind, Zone: zone, CapacityType: capacityType,
						Free: w.Room})
				}
			}
		}
	}
	for _, n := range a.class.Status.Subnets {
		f.FreeAddresses[n.ID] = plenty
		if w.Addresses >= 0 {
			f.FreeAddresses[n.ID] = w.Addresses
		}
	}
	if err := a.endpoint.SetFaults(f); err != nil {
		return fmt.Errorf("weather %+v: %w", w, err)
	}
	return nil
}
