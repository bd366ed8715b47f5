package offering

import (
	"fmt"
	"testing"
)

// E-24, E-64: what a line of the price list says, and which lines are none of ours.
func TestLinesOfThePriceList(t *testing.T) {
	t.Parallel()
	line := func(attributes, unit, price string) string {
		return fmt.Sprintf(
			`{"product":{"attributes":{"instanceType":"m5.large","regionCode":"us-east-1","operatingSystem":"Linux",
			"preInstalledSw":"NA","capacitystatus":"Used","tenancy":"Shared"%s}},"terms":{"OnDemand":{"a":{"priceDimensions":{
			"b":{"unit":%q,"pricePerUnit":{%s}}}}}}}`, attributes, unit, price)
	}
	for _, c := range []struct {
		name, text string
		want       listed // zero for none
	}{
		{"dollars", line("", "Hrs", `"USD":"0.0960000000"`), listed{"m5.large", shared, 96_000}},
		{"yuan are used as they are", line("", "Hrs", `"CNY":"0.6610000000"`), listed{"m5.large", shared, 661_000}},
		{"dedicated machines", line(`,"tenancy":"Dedicated"`, "Hrs", `"USD":"0.1"`),
			listed{"m5.large", dedicated, 100_000}},
		{"whole hosts", line(`,"tenancy":"Host"`, "Hrs", `"USD":"0.1"`), listed{}},
		{"not sold on demand", line("", "Hrs", `"USD":"0.0000000000"`), listed{}},
		{"by the month", line("", "Quantity", `"USD":"0.1"`), listed{}},
		{"another system", line(`,"operatingSystem":"Windows"`, "Hrs", `"USD":"0.1"`), listed{}},
		{"another region", line(`,"regionCode":"eu-west-1"`, "Hrs", `"USD":"0.1"`), listed{}},
		{"within a reservation", line(`,"capacitystatus":"AllocatedCapacityReservation"`, "Hrs", `"USD":"0.1"`),
			listed{}},
		{"software", line(`,"preInstalledSw":"SQL Web"`, "Hrs", `"USD":"0.1"`), listed{}},
		{"another currency", line("", "Hrs", `"EUR":"0.1"`), listed{}},
		{"no number", line("", "Hrs", `"USD":"NaN"`), listed{}},
		{"an absurd price", line("", "Hrs", `"USD":"1e30"`), listed{}},
		{"no JSON", "{", listed{}},
		{"nothing", "{}", listed{}},
	} {
		if got, ok := readLine(c.text, "us-east-1"); got != c.want || ok != (c.want != listed{}) {
			t.Errorf("%s: %+v, %t; want %+v", c.name, got, ok, c.want)
		}
	}
	for _, l := range []listed{{"m5.metal", dedicated, 1}, {"m5.metal", shared, 3}} {
		if best := (listed{"m5.metal", shared, 2}); !best.better(l, shared) || l.better(best, shared) {
			t.Errorf("%+v is preferred to the cheapest shared one", l)
		}
		if own := (listed{"m5.metal", dedicated, 1}); !own.better(listed{"m5.metal", shared, 1}, dedicated) ||
			!l.dedicated() {
			t.Errorf("%+v is no line of dedicated machines, or another is preferred to it", l)
		}
	}
}
