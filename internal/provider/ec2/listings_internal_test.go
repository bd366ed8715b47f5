package ec2

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// E-57, E-61: two callers may list at the same time. A listing that began earlier but ends later must not overwrite
// newer knowledge: otherwise tags that were written and seen would be written again.
func TestAnOlderListingTakesNothingBack(t *testing.T) {
	t.Parallel()
	const id = "aws:///us-east-1a/i-00000000000000001"
	p := &Provider{config: Config{Clock: timer.NewFake(time.Unix(0, 0))}, brought: map[string]provider.Instance{},
		tagged: map[string]map[string]string{}}
	listing := func(name string) map[string]machines.Machine {
		return map[string]machines.Machine{
			id: {InstanceID: "i-00000000000000001", Tags: map[string]string{"Name": name}},
		}
	}
	first, second, third := p.listings.Add(1), p.listings.Add(1), p.listings.Add(1)
	p.Tagged(id, map[string]string{"Name": "node-1"})
	for _, step := range []struct {
		listing int64
		shows   string
		want    string
	}{{second, "node-1", "node-1"}, {first, "", "node-1"}, {third, "another", "another"}} {
		p.saw(step.listing, listing(step.shows))
		if tags, found := p.TagsOf(id); !found || tags["Name"] != step.want {
			t.Errorf("after listing %d with %q: Name is %q, found: %t; want %q", step.listing, step.shows,
				tags["Name"], found, step.want)
		}
	}
}
