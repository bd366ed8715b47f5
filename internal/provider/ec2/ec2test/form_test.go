package ec2test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

type formOf struct {
	paging
	Name  string      `query:"Name"`
	Yes   *bool       `query:"Yes"`
	At    time.Time   `query:"At"`
	Share *float64    `query:"Share"`
	Items []formItem  `query:"Item"`
	Names []string    `query:"Names.member"`
	Below *formItem   `query:"Below"`
	Deep  []formDeep  `query:"Deep"`
	Plain []*formItem `query:"Plain"`
}

type formItem struct {
	Key string `query:"Key"`
}

type formDeep struct {
	Values []string `query:"Value"`
}

func TestAFormIsDecodedWhole(t *testing.T) {
	t.Parallel()
	values, err := url.ParseQuery("Name=n&Yes=true&At=2026-01-02T03:04:05Z&Share=0.5&Item.2.Key=b&Item.1.Key=a" +
		"&Names.member.1=x&Below.Key=k" +
		"&Deep.1.Value.1=p&Deep.1.Value.10=r&Deep.1.Value.2=q&MaxResults=7&NextToken=t&Plain.1.Key=z")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parseForm(values)
	if err != nil {
		t.Fatal(err)
	}
	var got formOf
	if err := decodeForm(tree, &got); err != nil {
		t.Fatal(err)
	}
	yes, share, most := true, 0.5, 7
	want := formOf{
		paging: paging{MaxResults: &most, NextToken: "t"}, Name: "n", Yes: &yes, At: time.Date(2026, 1, 2, 3, 4, 5, 0,
			time.UTC), Share: &share,
		Items: []formItem{{"a"}, {"b"}}, Names: []string{"x"}, Below: &formItem{"k"},
		Deep: []formDeep{{[]string{"p", "q",
			"r"}}},
		Plain: []*formItem{{"z"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, want %+v", got, want)
	}
}

func TestAFormThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Name=a&Name=b":                  `parameter "Name" is given 2 times`,
		"Name..x=a":                      "empty part",
		"Name.x=a":                       "does not know: Name.x",
		"Other=a&Item.0=b":               "does not know: Item.0, Other",
		"Item.01.Key=b":                  "does not know: Item.01.Key",
		"Yes=1":                          `value "1" for parameter Yes is invalid: true or false is allowed`,
		"MaxResults=many":                "parameter MaxResults is invalid",
		"At=yesterday":                   "parameter At is invalid",
		"Names.1=a":                      "does not know: Names.1",
		"Below=x":                        "does not know: Below",
		strings.Repeat("a.", 20) + "a=1": "has 21 parts",
	} {
		values, _ := url.ParseQuery(text)
		tree, err := parseForm(values)
		if err == nil {
			err = decodeForm(tree, &formOf{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// no form makes the decoder of any action panic.
func FuzzForm(f *testing.F) {
	f.Add("Action=CreateFleet&LaunchTemplateConfigs.1.Overrides.1.InstanceType=m5.large" +
		"&TargetCapacitySpecification.TotalTargetCapacity=1")
	f.Add("Filter.1.Name=tag:x&Filter.1.Value.1=*&MaxResults=5")
	f.Add("Item.99999999999999999999.Key=a&Item.-1=b&.=c&a.=d")
	f.Fuzz(func(t *testing.T, text string) {
		values, _ := url.ParseQuery(text)
		tree, err := parseForm(values)
		if err != nil {
			return
		}
		for _, into := range []any{&formOf{}, &createFleetIn{}, &createTemplateIn{}, &describeInstancesIn{},
			&describeSpotIn{}, &runIn{}} {
			_ = decodeForm(tree, into)
		}
		_ = tree.flat()
	})
}

func FuzzWild(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add(`\*`, "*")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		wild(pattern, text)
		if !wild("*", text) || !wild(text+"*", text) && !strings.ContainsAny(text, `*?\`) {
			t.Errorf("%q is not taken by what takes everything", text)
		}
	})
}

func TestFilterValuesMayBeWild(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"*", "", true}, {"a*", "abc", true}, {"a*c", "abcbc", true}, {"a?c", "abc", true},
		{"a?c", "ac",
			false},
		{"*b", "abab", true}, {`\*`, "*", true}, {`\*`, "x", false}, {"a", "ab", false}, {"", "a", false},
		{"**", "x", true}, {`a*\?`, "abc?", true},
	} {
		if got := wild(c.pattern, c.text); got != c.want {
			t.Errorf("%q takes %q: %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}
