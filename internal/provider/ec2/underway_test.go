package ec2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// fleets records calls of CreateFleet. The first one waits until it is let go, if somebody wants to see it.
type fleets struct {
	aws.HTTPClient
	first chan struct{} // nil for no waiting
	letGo chan struct{}

	mu    sync.Mutex
	asked []url.Values
}

// Do implements aws.HTTPClient.
func (f *fleets) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return f.HTTPClient.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") == "CreateFleet" {
		f.mu.Lock()
		f.asked = append(f.asked, form)
		number := len(f.asked)
		f.mu.Unlock()
		if number == 1 && f.first != nil {
			close(f.first)
			<-f.letGo
		}
	}
	return f.HTTPClient.Do(r)
}

// anyType lets a claim take each of the region's types.
func anyType(c *karpenterv1.NodeClaim) {
	c.Spec.Requirements = nil
	must(karpenterv1.CapacityTypeLabelKey, "on-demand")(c)
}

// E-12: a launch under way holds the addresses of the types that its fleet has. It takes no zone from others, and it
// is no lack of addresses to tell users about.
func TestALaunchUnderWayLeavesTheZones(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	a.pods, a.clock.never = subnet.Secondary, true
	of := func(group string, size int) func(*karpenterv1.NodeClaim) {
		return func(c *karpenterv1.NodeClaim) { translate.SetCompany(c, translate.Company{Group: group, Size: size}) }
	}
	watch := &fleets{first: make(chan struct{}), letGo: make(chan struct{})}
	a.through = func(to aws.HTTPClient) aws.HTTPClient { watch.HTTPClient = to; return watch }
	a.Provider = a.restart(t, whatIsSold(t), "")
	class := a.kube.classes["default"]
	result := resolve.Result{SubnetsAsked: a.server.Now()}
	for _, n := range class.Status.Subnets {
		result.Subnets = append(result.Subnets, subnet.Subnet{ID: n.ID, Zone: n.Zone, ZoneID: n.ZoneID, Free: 4000})
	}
	a.Resolved([]*awsv1.EC2NodeClass{class}, map[string]resolve.Result{"default": result})
	const together = 6
	var group sync.WaitGroup
	for i := range together {
		group.Go(func() {
			c := claim(fmt.Sprint("n", i), anyType, of("all", together))
			if _, err := a.Launch(t.Context(), c, time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	<-watch.first
	a.server.Advance(2 * time.Second) // the next catalogue is a new one
	c, err := a.Catalog(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	zones, checked := []string{"us-east-1a", "us-east-1b", "us-east-1c"}, map[int64]bool{}
	for _, kind := range c.Types {
		pods := kind.Capacity[resources.NamePods]
		if pods > 737 {
			continue
		}
		var free []string
		for _, o := range kind.Offerings {
			if o.Available && !slices.Contains(free, o.Zone) {
				free = append(free, o.Zone)
			}
		}
		if checked[pods] = true; len(kind.Offerings) == 2*len(zones) && !slices.Equal(free, zones) {
			t.Errorf("%s with %d pods is offered in %v, want %v", kind.Name, pods, free, zones)
			break
		}
	}
	if !checked[58] || !checked[737] {
		t.Errorf("types with these numbers of pods were looked at: %v", checked)
	}
	b := claim("b", must(corev1.LabelTopologyZone, "us-east-1b"), of("one", 1))
	i, err := a.Launch(t.Context(), b, time.Time{})
	if err != nil || i.Zone != "us-east-1b" {
		t.Errorf("launched in %q, error %v; want us-east-1b", i.Zone, err)
	}
	close(watch.letGo)
	group.Wait()
	if n := a.Machines(); n != together+1 || len(a.told) > 0 {
		t.Errorf("%d machines, told %+v; want %d and nothing", n, a.told, together+1)
	}
}

// E-28, E-30: only the templates that a fleet names are made, however many types its claims take.
func TestOnlyTemplatesOfTheFleetAreMade(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	watch := &fleets{}
	a.through = func(to aws.HTTPClient) aws.HTTPClient { watch.HTTPClient = to; return watch }
	a.Provider = a.restart(t, whatIsSold(t), "")
	if _, err := a.Launch(t.Context(), claim("n0", anyType), time.Time{}); err != nil {
		t.Fatal(err)
	}
	var named []string
	for key, values := range watch.asked[0] {
		if strings.HasSuffix(key, ".LaunchTemplateName") {
			named = append(named, values...)
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	made := slices.Sorted(slices.Values(a.server.LaunchTemplates()))
	if calls := a.server.Counts()["ec2:CreateLaunchTemplate"]; calls != len(named) || !slices.Equal(made, named) {
		t.Errorf("%d calls made the templates %v, want those that the fleet names: %v", calls, made, named)
	}
}
