package ec2test

import (
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// foreign writes an SDK type with EC2's names: the first letter is lower case, and items of a list are called item.
// This holds for everything in an instance type; the exceptions are in odd.
type foreign struct{ of any }

// odd has the lists with other names: of the list, and of its items.
var odd = map[string][2]string{
	"InferenceAcceleratorInfo.Accelerators": {"accelerators", "member"},
	"EbsInfo.EbsCards":                      {"ebsCardSet", "item"},
	"NetworkCardInfo.InterfaceTypes":        {"interfaceTypeSet", "item"},
	"GpuDeviceInfo.Workloads":               {"workloadSet", "item"},
}

// MarshalXML writes the fields that are set.
func (f foreign) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	return marshalForeign(e, start, reflect.ValueOf(f.of))
}

func marshalForeign(e *xml.Encoder, start xml.StartElement, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return marshalForeign(e, start, v.Elem())
	case reflect.Struct:
		if err := e.EncodeToken(start); err != nil {
			return err
		}
		for i := range v.NumField() {
			if err := marshalField(e, v.Type().Name(), v.Type().Field(i), v.Field(i)); err != nil {
				return err
			}
		}
		return e.EncodeToken(start.End())
	default:
		return e.EncodeElement(v.Interface(), start)
	}
}

func marshalField(e *xml.Encoder, of string, field reflect.StructField, v reflect.Value) error {
	if !field.IsExported() || v.IsZero() {
		return nil
	}
	start := xml.StartElement{Name: xml.Name{Local: small(field.Name)}}
	if v.Kind() != reflect.Slice {
		return marshalForeign(e, start, v)
	}
	name := "item"
	if other, is := odd[of+"."+field.Name]; is {
		start.Name.Local, name = other[0], other[1]
	}
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := marshalForeign(e, xml.StartElement{Name: xml.Name{Local: name}}, v.Index(i)); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

func small(name string) string { return string(unicode.ToLower(rune(name[0]))) + name[1:] }

type describeTypesIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	Types   []string `query:"InstanceType"`
}

type describeTypesOut struct {
	Types []foreign `xml:"instanceTypeSet>item"`
	Next  *string   `xml:"nextToken"`
}

type typeInfo = ec2types.InstanceTypeInfo

var typeFilters = fields[typeInfo]{
	"instance-type":      one(func(i typeInfo) string { return string(i.InstanceType) }),
	"current-generation": one(func(i typeInfo) string { return yes(i.CurrentGeneration) }),
	"bare-metal":         one(func(i typeInfo) string { return yes(i.BareMetal) }),
	"hypervisor":         one(func(i typeInfo) string { return string(i.Hypervisor) }),
	"supported-virtualization-type": func(i typeInfo) []string {
		return texts(i.SupportedVirtualizationTypes)
	},
	"supported-usage-class": func(i typeInfo) []string { return texts(i.SupportedUsageClasses) },
	"processor-info.supported-architecture": func(i typeInfo) []string {
		if i.ProcessorInfo == nil {
			return nil
		}
		return texts(i.ProcessorInfo.SupportedArchitectures)
	},
}

func yes(b *bool) string { return fmt.Sprint(b != nil && *b) }

func texts[T ~string](list []T) []string {
	var all []string
	for _, item := range list {
		all = append(all, string(item))
	}
	return all
}

func describeInstanceTypes(c *call, in *describeTypesIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.Types, "instanceTypes"); err != nil {
		return nil, err
	}
	var list []typeInfo
	for _, name := range in.Types {
		info, known := c.types[name]
		if !known {
			return nil, refuse(400, "InvalidInstanceType", "The following supplied instance types do not exist: [%s]",
				name)
		}
		list = append(list, info)
	}
	if len(in.Types) == 0 {
		list = slices.Collect(maps.Values(c.types))
	}
	list, err := filtered(list, in.Filters, typeFilters, nil)
	if err != nil {
		return nil, err
	}
	name := func(i typeInfo) string { return string(i.InstanceType) }
	list, next, err := page(c, list, name, in.paging, bounds{5, 100})
	if err != nil {
		return nil, err
	}
	out := describeTypesOut{Next: next}
	for _, info := range list {
		out.Types = append(out.Types, foreign{info})
	}
	return out, nil
}

type describeOfferingsIn struct {
	checked
	paging
	Filters      []filter `query:"Filter"`
	LocationType string   `query:"LocationType"`
}

type offering struct {
	Type         string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

type describeOfferingsOut struct {
	Offerings []offering `xml:"instanceTypeOfferingSet>item"`
	Next      *string    `xml:"nextToken"`
}

var offeringFilters = fields[offering]{
	"location":      one(func(o offering) string { return o.Location }),
	"instance-type": one(func(o offering) string { return o.Type }),
}

func describeInstanceTypeOfferings(c *call, in *describeOfferingsIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	places := func(string) []string { return []string{c.region} }
	kind := in.LocationType
	switch kind {
	case "", "region":
		kind = "region"
	case "availability-zone":
		places = func(name string) []string { return c.zonesOf[name] }
	case "availability-zone-id":
		places = func(name string) []string {
			var ids []string
			for _, zone := range c.zonesOf[name] {
				ids = append(ids, zoneID(zone))
			}
			return ids
		}
	default:
		return nil, refuse(400, codeBadValue, "Value (%s) for parameter locationType is invalid.", kind)
	}
	var list []offering
	for name := range c.types {
		for _, place := range places(name) {
			list = append(list, offering{name, kind, place})
		}
	}
	list, err := filtered(list, in.Filters, offeringFilters, nil)
	if err != nil {
		return nil, err
	}
	key := func(o offering) string { return o.Type + "/" + o.Location }
	list, next, err := page(c, list, key, in.paging, bounds{5, 1000})
	return describeOfferingsOut{list, next}, err
}

type describeSpotIn struct {
	checked
	paging
	Filters  []filter  `query:"Filter"`
	Types    []string  `query:"InstanceType"`
	Products []string  `query:"ProductDescription"`
	Zone     string    `query:"AvailabilityZone"`
	Start    time.Time `query:"StartTime"`
	End      time.Time `query:"EndTime"`
}

type spotPrice struct {
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	At      string `xml:"timestamp"`
}

type describeSpotOut struct {
	Prices []spotPrice `xml:"spotPriceHistorySet>item"`
	Next   *string     `xml:"nextToken"`
}

var spotFilters = fields[spotPrice]{
	"availability-zone":   one(func(p spotPrice) string { return p.Zone }),
	"instance-type":       one(func(p spotPrice) string { return p.Type }),
	"product-description": one(func(p spotPrice) string { return p.Product }),
	"spot-price":          one(func(p spotPrice) string { return p.Price }),
}

// spotProduct is the product of Linux. Only accounts from before VPCs have prices of "Linux/UNIX (Amazon VPC)".
const spotProduct = "Linux/UNIX"

// describeSpotPriceHistory returns one price for each pool and product, from an hour ago.
func describeSpotPriceHistory(c *call, in *describeSpotIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	at := c.now().Add(-time.Hour).UTC().Truncate(time.Second)
	var list []spotPrice
	for name, info := range c.types {
		if len(in.Types) > 0 && !slices.Contains(in.Types, name) ||
			!slices.Contains(info.SupportedUsageClasses, spot) {
			continue
		}
		for _, zone := range c.zonesOf[name] {
			if in.Zone != "" && in.Zone != zone {
				continue
			}
			if len(in.Products) == 0 || slices.Contains(in.Products, spotProduct) {
				price := fmt.Sprintf("%.6f", c.spotPrice(name, zone))
				list = append(list, spotPrice{zone, zoneID(zone), name, spotProduct, price, at.Format(time.RFC3339)})
			}
		}
	}
	list, err := filtered(list, in.Filters, spotFilters, nil)
	if err != nil {
		return nil, err
	}
	key := func(p spotPrice) string { return strings.Join([]string{p.Type, p.Zone, p.Product}, "/") }
	list, next, err := page(c, list, key, in.paging, bounds{1, 1000})
	return describeSpotOut{list, next}, err
}

// listing asks for the right to list, and ends a dry run.
func (c *call) listing(dry bool) error {
	if err := c.list(); err != nil {
		return err
	}
	return c.dry(dry)
}
