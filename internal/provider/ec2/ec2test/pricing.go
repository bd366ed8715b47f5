package ec2test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func pricingActions(p protocol) map[string]action {
	return map[string]action{"GetProducts": typed(p, getProducts)}
}

type getProductsIn struct {
	ServiceCode   string
	FormatVersion string
	Filters       []struct{ Field, Type, Value string }
	MaxResults    *int
	NextToken     string
}

// product is a line of the price list.
type product struct {
	ProductFamily string            `json:"productFamily"`
	Attributes    map[string]string `json:"attributes"`
	SKU           string            `json:"sku"`
}

// dedicatedShare is the price of a dedicated machine divided by that of a shared one.
const dedicatedShare = 1.1

// products returns the lines of the Pricing API for Linux on shared and on dedicated machines; types whose names begin
// with t2 have no dedicated ones. Each type also has lines of Windows, which a caller with too few filters takes for
// Linux.
func (s *Server) products() []product {
	var all []product
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		for _, system := range []string{"Linux", "Windows"} {
			family := "Compute Instance"
			if strings.Contains(name, ".metal") {
				family += " (bare metal)"
			}
			line := func(tenancy, sku string) {
				all = append(all, product{ProductFamily: family, SKU: strings.ToUpper(sum(sku)[:16]),
					Attributes: map[string]string{
						"instanceType": name, "regionCode": s.region, "operatingSystem": system, "tenancy": tenancy,
						"capacitystatus": "Used",
						"preInstalledSw": "NA", "marketoption": "OnDemand", "locationType": "AWS Region",
						"servicecode": "AmazonEC2", "licenseModel": "No License required",
					}})
			}
			line("Shared", name+system)
			if family == "Compute Instance" && !strings.HasPrefix(name, "t2.") {
				line("Dedicated", name+system+"Dedicated")
			}
		}
	}
	return all
}

func getProducts(c *call, in *getProductsIn) (any, error) {
	if err := c.list(); err != nil {
		return nil, err
	}
	if in.ServiceCode != "AmazonEC2" {
		return nil, refuse(400, "InvalidParameterException", "the endpoint has prices of AmazonEC2, not of %q",
			in.ServiceCode)
	}
	list := slices.DeleteFunc(c.products(), func(p product) bool {
		for _, f := range in.Filters {
			have := p.Attributes[f.Field]
			if f.Field == "productFamily" {
				have = p.ProductFamily
			}
			if have != f.Value && f.Field != "serviceCode" {
				return true
			}
		}
		return false
	})
	for _, f := range in.Filters {
		if f.Type != "TERM_MATCH" {
			return nil, refuse(400, "InvalidParameterException", "filter %s has type %q; TERM_MATCH is allowed",
				f.Field, f.Type)
		}
	}
	list, next, err := page(c, list, func(p product) string { return p.SKU }, paging{in.MaxResults, in.NextToken},
		bounds{1, 100})
	if err != nil {
		return nil, err
	}
	out := struct {
		FormatVersion string
		PriceList     []string
		NextToken     *string `json:",omitempty"`
	}{"aws_v1", []string{}, next}
	for _, p := range list {
		text, err := json.Marshal(c.offer(p))
		if err != nil {
			return nil, err
		}
		out.PriceList = append(out.PriceList, string(text))
	}
	return out, nil
}

// offer returns a product with its price.
func (s *Server) offer(p product) map[string]any {
	const term, rate = "JRTCKXETXF", "6YS6EN2CT7"
	price := s.onDemandPrice(p.Attributes["instanceType"])
	if p.Attributes["operatingSystem"] == "Windows" {
		price *= 2
	}
	if p.Attributes["tenancy"] == "Dedicated" {
		price *= dedicatedShare
	}
	currency := "USD"
	if strings.HasPrefix(s.region, "cn-") {
		currency = "CNY"
	}
	dimension := map[string]any{"unit": "Hrs", "rateCode": p.SKU + "." + term + "." + rate,
		"pricePerUnit": map[string]string{currency: fmt.Sprintf("%.10f", price)}}
	return map[string]any{
		"product": p, "serviceCode": "AmazonEC2", "version": "20260801", "publicationDate": "2026-08-01T00:00:00Z",
		"terms": map[string]any{"OnDemand": map[string]any{p.SKU + "." + term: map[string]any{
			"sku": p.SKU, "offerTermCode": term, "priceDimensions": map[string]any{
				p.SKU + "." + term + "." + rate: dimension,
			},
		}}},
	}
}
