package offering

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// PricingAPI is the part of the Pricing service's client that [Prices] needs.
type PricingAPI interface {
	GetProducts(context.Context, *pricing.GetProductsInput,
		...func(*pricing.Options)) (*pricing.GetProductsOutput, error)
}

// PricingEndpoint decides which endpoint to ask for prices (E-25).
type PricingEndpoint struct {
	Cluster  string // region of the cluster
	Setting  string // pricing-region; "" to choose by the cluster's
	Isolated bool   // isolated-vpc: the service cannot be reached
}

// Region returns the region whose Pricing endpoint to ask; ok is false when there is none. The service has few
// endpoints, and each has the prices of all regions of its partition. GovCloud and the other partitions have no
// endpoint.
func (e PricingEndpoint) Region() (region string, ok bool) {
	within := func(prefix string) bool { return strings.HasPrefix(e.Cluster, prefix) }
	switch {
	case e.Isolated, within("us-gov-"), strings.Contains(e.Cluster, "-iso"), within("eusc-"):
		return "", false
	case e.Setting != "":
		return e.Setting, true
	case within("ap-"):
		return "ap-south-1", true
	case within("eu-"):
		return "eu-central-1", true
	case within("cn-"):
		return "cn-northwest-1", true
	}
	return "us-east-1", true
}

// Values of the attributes of products.
const (
	linux, notInstalled, used = "Linux", "NA", "Used"
	virtual, metal            = "Compute Instance", "Compute Instance (bare metal)"
	shared, dedicated         = "Shared", "Dedicated"
	pricingPage               = 100
)

// onDemandPrices are prices per hour, by type.
type onDemandPrices struct {
	at     time.Time
	prices map[string]resources.Money
}

// askOnDemand asks for the price list of a region: machines of a tenancy with plain Linux, not in a capacity
// reservation (E-24). Bare metal is listed separately, and its tenancy is unreliable.
func askOnDemand(ctx context.Context, api PricingAPI, region, tenancy string, now time.Time) (*onDemandPrices, error) {
	found := map[string]listed{}
	for _, of := range [][][2]string{{{"productFamily", virtual}, {"tenancy", tenancy}}, {{"productFamily", metal}}} {
		in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(pricingPage)}
		for _, f := range append(of, [][2]string{{"regionCode", region}, {"operatingSystem", linux},
			{"preInstalledSw", notInstalled}, {"capacitystatus", used}, {"marketoption", "OnDemand"}}...) {
			in.Filters = append(in.Filters, pricingtypes.Filter{
				Field: aws.String(f[0]), Value: aws.String(f[1]), Type: pricingtypes.FilterTypeTermMatch,
			})
		}
		err := pages(func(token *string) (*string, error) {
			in.NextToken = token
			out, err := api.GetProducts(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, text := range out.PriceList {
				if line, ok := readLine(text, region); ok && (tenancy == shared || line.dedicated()) {
					best, any := found[line.kind]
					if !any || line.better(best, tenancy) {
						found[line.kind] = line
					}
				}
			}
			return out.NextToken, nil
		})
		if err != nil {
			return nil, fmt.Errorf("asking for on-demand prices: %w", err)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("the price list has no on-demand price for region " + region)
	}
	answer := &onDemandPrices{at: now, prices: map[string]resources.Money{}}
	for kind, line := range found {
		answer.prices[kind] = line.price
	}
	return answer, nil
}

// listed is a line of the price list.
type listed struct {
	kind, tenancy string
	price         resources.Money
}

// better reports whether a line is preferred to another one of the same type: the right tenancy first, then the lower
// price.
func (l listed) better(other listed, tenancy string) bool {
	return cmp.Or(cmp.Compare(l.rank(tenancy), other.rank(tenancy)), cmp.Compare(l.price, other.price)) < 0
}

func (l listed) rank(tenancy string) int {
	if l.tenancy == tenancy {
		return 0
	}
	return 1
}

// dedicated reports whether a line is for machines that nobody shares. Bare metal always is, whatever its tenancy
// says.
func (l listed) dedicated() bool { return l.tenancy == dedicated || strings.Contains(l.kind, ".metal") }

// priceLine is the part of a line's JSON that we read.
type priceLine struct {
	Product struct {
		Attributes struct {
			InstanceType, RegionCode, OperatingSystem, Tenancy, PreInstalledSw string
			CapacityStatus                                                     string `json:"capacitystatus"`
		}
	}
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string
				PricePerUnit map[string]string // decimal, by currency
			}
		}
	}
}

// readLine reads a line of the price list. ok is false if it is malformed, not ours, or without a price: types not
// sold on demand are listed with 0. It checks the filters again, for servers that ignore them (E-64).
func readLine(text, region string) (line listed, ok bool) {
	var read priceLine
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return listed{}, false
	}
	a := read.Product.Attributes
	for _, attribute := range [][2]string{{a.RegionCode, region}, {a.OperatingSystem, linux},
		{a.PreInstalledSw, notInstalled}, {a.CapacityStatus, used}} {
		if attribute[0] != "" && attribute[0] != attribute[1] {
			return listed{}, false
		}
	}
	if a.InstanceType == "" || a.Tenancy != shared && a.Tenancy != dedicated {
		return listed{}, false
	}
	for _, term := range slices.Sorted(maps.Keys(read.Terms.OnDemand)) {
		dimensions := read.Terms.OnDemand[term].PriceDimensions
		for _, code := range slices.Sorted(maps.Keys(dimensions)) {
			if d := dimensions[code]; d.Unit == "Hrs" {
				// China's prices are in yuan, and used as they are: only their order matters.
				if price, ok := money(cmp.Or(d.PricePerUnit["USD"], d.PricePerUnit["CNY"])); ok {
					return listed{kind: a.InstanceType, tenancy: a.Tenancy, price: price}, true
				}
			}
		}
	}
	return listed{}, false
}

// money reads a price per hour. 0 counts as no price.
func money(text string) (resources.Money, bool) {
	dollars, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	price, err := resources.FromDollars(dollars)
	return price, err == nil && price > 0
}
