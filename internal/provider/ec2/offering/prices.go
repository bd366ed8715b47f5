package offering

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// How often to ask for prices (E-24).
const (
	onDemandEvery = 12 * time.Hour
	spotEvery     = 10 * time.Minute
	spotPage      = 1000
)

// Unknown is the price in a catalogue for offerings without a known price. It is the highest that planning accepts, so
// that they come last, and nothing is replaced by them to save money (E-26).
const Unknown = resources.MaxPrice

// SpotAPI is the part of EC2's client that [Prices] needs.
type SpotAPI interface {
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (
		*ec2.DescribeSpotPriceHistoryOutput, error)
}

// PricesConfig configures [Prices].
type PricesConfig struct {
	Clock  timer.Clock
	Region string // of the cluster
	EC2    SpotAPI
	// Pricing is a client for the region of [PricingEndpoint]; nil if there is none to ask.
	Pricing PricingAPI
	// Table has the prices that the Pricing service does not provide, of the cluster's region or otherwise of another
	// one. nil for none.
	Table *tables.Prices
}

// Prices keeps the prices of instance types. Safe for concurrent use.
type Prices struct {
	onDemand *source[onDemandPrices] // nil: not asked for
	// dedicated are on-demand prices of dedicated machines, requested once somebody wants such machines.
	dedicated *source[onDemandPrices] // nil: not asked for
	wanted    atomic.Bool
	spot      *source[spotPrices]
	table     *tables.Prices
	region    string
}

// NewPrices returns Prices that know only their table.
func NewPrices(c PricesConfig) *Prices {
	p := &Prices{table: c.Table, region: c.Region}
	if p.table == nil {
		p.table = &tables.Prices{Region: c.Region}
	}
	p.spot = newSource(c.Clock, spotEvery, func(ctx context.Context, now time.Time) (*spotPrices, error) {
		return askSpot(ctx, c.EC2, now)
	})
	if c.Pricing != nil {
		p.onDemand = newSource(c.Clock, onDemandEvery,
			func(ctx context.Context, now time.Time) (*onDemandPrices, error) {
				return askOnDemand(ctx, c.Pricing, c.Region, shared, now)
			})
		p.dedicated = newSource(c.Clock, onDemandEvery,
			func(ctx context.Context, now time.Time) (*onDemandPrices, error) {
				return askOnDemand(ctx, c.Pricing, c.Region, dedicated, now)
			})
	}
	return p
}

// Refresh asks again for on-demand prices older than 12 h, and for spot prices older than 10 min. A failure of one
// keeps its prices and does not affect the other. The retry comes after one minute, then two, and so on up to an hour;
// for spot prices up to 10 min.
func (p *Prices) Refresh(ctx context.Context) error {
	err := p.spot.refresh(ctx)
	if p.onDemand != nil {
		err = errors.Join(p.onDemand.refresh(ctx), err)
	}
	if p.dedicated != nil && p.wanted.Load() {
		err = errors.Join(p.dedicated.refresh(ctx), err)
	}
	return err
}

// WantDedicated makes Refresh ask for the prices of dedicated machines from now on, and reports whether that is new.
func (p *Prices) WantDedicated() bool { return !p.wanted.Swap(true) }

// Due returns when to call Refresh again; before that it does nothing.
func (p *Prices) Due() time.Time {
	due := p.spot.due()
	if p.onDemand != nil {
		if other := p.onDemand.due(); other.Before(due) {
			due = other
		}
	}
	if p.dedicated != nil && p.wanted.Load() {
		if other := p.dedicated.due(); other.Before(due) {
			due = other
		}
	}
	return due
}

// Known returns the currently known prices.
func (p *Prices) Known() PriceList {
	list := PriceList{table: p.table, region: p.region, spot: p.spot.get()}
	if p.onDemand != nil {
		list.onDemand, list.dedicated = p.onDemand.get(), p.dedicated.get()
	}
	return list
}

// PriceList has the prices at one time. It is immutable. Two lists of one [Prices] are equal (==) when nothing has
// changed. The zero value knows no price.
type PriceList struct {
	onDemand, dedicated *onDemandPrices
	spot                *spotPrices
	table               *tables.Prices
	region              string
}

// OnDemand returns the price of a type per hour, from the Pricing service or otherwise the table. ok is false when
// neither has one.
func (l PriceList) OnDemand(kind string) (price resources.Money, ok bool) {
	if l.onDemand != nil {
		if price, ok = l.onDemand.prices[kind]; ok {
			return price, true
		}
	}
	if l.table != nil {
		price, ok = l.table.OnDemand[kind]
	}
	return price, ok
}

// Dedicated returns the price of a dedicated machine of a type per hour. sold is false if the price list does not have
// it. Before there is a price list, every type counts as sold, at the price of a shared machine or the highest: at
// least this shows which type is cheaper.
func (l PriceList) Dedicated(kind string) (price resources.Money, sold bool) {
	if l.dedicated != nil && !l.dedicated.at.IsZero() {
		price, sold = l.dedicated.prices[kind]
		return price, sold
	}
	price, known := l.OnDemand(kind)
	if !known {
		price = Unknown
	}
	return price, true
}

// Spot returns the price of a type in a zone per hour, from EC2 or otherwise 60 % of on-demand (E-24). ok is false
// when neither is known.
func (l PriceList) Spot(kind, zone string) (price resources.Money, ok bool) {
	if l.spot != nil {
		if price, ok = l.spot.prices[kind][zone]; ok {
			return price, true
		}
	}
	price, ok = l.OnDemand(kind)
	return price * 6 / 10, ok
}

// The sources of prices, as the gauge of their age names them.
const (
	SourceOnDemand = "on-demand"
	SourceSpot     = "spot"
)

// Age returns how old the answer of a source is at now. ok is false when it never answered, or is never asked.
func (l PriceList) Age(source string, now time.Time) (age time.Duration, ok bool) {
	var at time.Time
	switch {
	case source == SourceOnDemand && l.onDemand != nil:
		at = l.onDemand.at
	case source == SourceSpot && l.spot != nil:
		at = l.spot.at
	}
	return now.Sub(at), !at.IsZero()
}

// Borrowed returns the text of an event if on-demand prices are from another region, or very old; "" otherwise (E-26).
func (l PriceList) Borrowed() string {
	if l.onDemand != nil && len(l.onDemand.prices) > 0 || l.table == nil || len(l.table.OnDemand) == 0 {
		return ""
	}
	day := ""
	if !l.table.Date.IsZero() {
		day = " of " + l.table.Date.Format(time.DateOnly)
	}
	switch {
	case l.table.Region != l.region:
		return fmt.Sprintf(
			"prices for %s are not known: those%s for %s are used, so that cheap types are told from dear ones; "+
				"what nodes cost there is another matter", l.region, day, l.table.Region)
	case l.table.Old:
		return fmt.Sprintf("today's prices for %s are not known: those%s are used; types that are newer have none",
			l.region, day)
	}
	return ""
}

// spotPrices are prices per hour, by type and zone.
type spotPrices struct {
	at     time.Time
	prices map[string]map[string]resources.Money
}

// askSpot asks for the current spot prices. EC2 has two Linux products, and an account sees one or both of them. For
// each, EC2 returns the price that was last set before the requested time.
func askSpot(ctx context.Context, api SpotAPI, now time.Time) (*spotPrices, error) {
	answer := &spotPrices{at: now, prices: map[string]map[string]resources.Money{}}
	since := map[[2]string]time.Time{} // by type and zone
	in := &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{string(ec2types.RIProductDescriptionLinuxUnix),
			string(ec2types.RIProductDescriptionLinuxUnixAmazonVpc)},
		StartTime: aws.Time(now), MaxResults: aws.Int32(spotPage),
	}
	err := pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := api.DescribeSpotPriceHistory(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, p := range out.SpotPriceHistory {
			pool := [2]string{string(p.InstanceType), value(p.AvailabilityZone)}
			price, ok := money(value(p.SpotPrice))
			at, known := since[pool]
			if !ok || pool[0] == "" || pool[1] == "" || known && !value(p.Timestamp).After(at) {
				continue
			}
			if answer.prices[pool[0]] == nil {
				answer.prices[pool[0]] = map[string]resources.Money{}
			}
			since[pool], answer.prices[pool[0]][pool[1]] = value(p.Timestamp), price
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("asking EC2 for spot prices: %w", err)
	}
	if len(answer.prices) == 0 {
		return nil, errors.New("EC2 tells no spot price: those that were known stay")
	}
	return answer, nil
}
