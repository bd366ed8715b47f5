package offering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// typesEvery is how often EC2 is asked what it sells: new types come every few weeks.
const typesEvery = 12 * time.Hour

// EC2's maximum page sizes.
const (
	typesPage     = 100
	offeringsPage = 1000
)

// TypesAPI is the part of EC2's client that [Types] needs.
type TypesAPI interface {
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (
		*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput, ...func(*ec2.Options)) (
		*ec2.DescribeInstanceTypeOfferingsOutput, error)
}

// Sold is what EC2 sells in a region. It is immutable.
type Sold struct {
	// Types by name. Each has vCPUs and memory.
	Types map[string]ec2types.InstanceTypeInfo
	// Zones are the sorted names of the zones in which a type is sold, by the type's name. A type without zones is not
	// sold.
	Zones map[string][]string
	// At is when EC2 was asked; zero before its first answer.
	At time.Time
}

// Types keeps what EC2 sells (E-17). Safe for concurrent use.
type Types struct{ source *source[Sold] }

// NewTypes returns empty Types.
func NewTypes(api TypesAPI, clock timer.Clock) *Types {
	return &Types{newSource(clock, typesEvery, func(ctx context.Context, now time.Time) (*Sold, error) {
		return askTypes(ctx, api, now)
	})}
}

// Refresh asks EC2 again if its last answer is 12 h old. An error keeps the last answer. The retry comes after one
// minute, then two, and so on up to an hour.
func (t *Types) Refresh(ctx context.Context) error { return t.source.refresh(ctx) }

// Due returns when to call Refresh again; before that it does nothing.
func (t *Types) Due() time.Time { return t.source.due() }

// Known returns EC2's last answer, never nil. The same pointer means that nothing has changed.
func (t *Types) Known() *Sold { return t.source.get() }

func askTypes(ctx context.Context, api TypesAPI, now time.Time) (*Sold, error) {
	sold := &Sold{Types: map[string]ec2types.InstanceTypeInfo{}, Zones: map[string][]string{}, At: now}
	in := &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(typesPage), Filters: []ec2types.Filter{
		{Name: aws.String("supported-virtualization-type"), Values: []string{string(ec2types.VirtualizationTypeHvm)}},
		{Name: aws.String("processor-info.supported-architecture"), Values: []string{
			string(ec2types.ArchitectureTypeX8664), string(ec2types.ArchitectureTypeArm64),
		}},
	}}
	err := pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := api.DescribeInstanceTypes(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, info := range out.InstanceTypes {
			if usable(&info) {
				sold.Types[string(info.InstanceType)] = info
			}
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("asking EC2 for instance types: %w", err)
	}
	if err := askZones(ctx, api, sold.Zones); err != nil {
		return nil, fmt.Errorf("asking EC2 for the zones of instance types: %w", err)
	}
	if len(sold.Types) == 0 || len(sold.Zones) == 0 {
		return nil, errors.New("EC2 names no instance type, or no zone: what was known of them stays")
	}
	return sold, nil
}

func askZones(ctx context.Context, api TypesAPI, zones map[string][]string) error {
	in := &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: ec2types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(offeringsPage),
	}
	err := pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := api.DescribeInstanceTypeOfferings(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, o := range out.InstanceTypeOfferings {
			if zone := value(o.Location); zone != "" && o.InstanceType != "" {
				zones[string(o.InstanceType)] = append(zones[string(o.InstanceType)], zone)
			}
		}
		return out.NextToken, nil
	})
	for kind, list := range zones {
		slices.Sort(list)
		zones[kind] = slices.Compact(list)
	}
	return err
}

// usable reports whether EC2's description of a type has what planning needs.
func usable(info *ec2types.InstanceTypeInfo) bool {
	return info.InstanceType != "" && info.VCpuInfo != nil && value(info.VCpuInfo.DefaultVCpus) > 0 &&
		info.MemoryInfo != nil && value(info.MemoryInfo.SizeInMiB) > 0
}
