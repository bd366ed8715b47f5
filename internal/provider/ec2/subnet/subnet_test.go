package subnet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

func ids(subnets []subnet.Subnet) string {
	var all []string
	for _, s := range subnets {
		all = append(all, s.ID)
	}
	return strings.Join(all, " ")
}

func tagged(id string, free int64, tags map[string]string) subnet.Subnet {
	return subnet.Subnet{ID: id, Zone: "z", VPC: "vpc-1", Free: free, Tags: tags}
}

// E-11: subnets by id and tags, most free addresses first.
func TestWhichSubnetsAClassHas(t *testing.T) {
	t.Parallel()
	all := []subnet.Subnet{
		tagged("subnet-a", 5, map[string]string{"env": "prod", "Name": "web-1"}),
		tagged("subnet-b", 9, map[string]string{"env": "prod"}),
		tagged("subnet-c", 9, map[string]string{"env": "test", "Name": "web-22"}),
		tagged("subnet-d", 1, map[string]string{"a*b": "x*y"}),
		tagged("subnet-a", 5, map[string]string{"env": "prod"}),
	}
	by := func(pairs ...string) awsv1.SubnetSelectorTerm {
		tags := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			tags[pairs[i]] = pairs[i+1]
		}
		return awsv1.SubnetSelectorTerm{Tags: tags}
	}
	for _, c := range []struct {
		terms []awsv1.SubnetSelectorTerm
		want  string
	}{
		{terms: nil},
		{terms: []awsv1.SubnetSelectorTerm{{}}},
		{terms: []awsv1.SubnetSelectorTerm{{ID: "subnet-c"}, {ID: "subnet-x"}}, want: "subnet-c"},
		{terms: []awsv1.SubnetSelectorTerm{by("env", "prod")}, want: "subnet-b subnet-a"},
		{terms: []awsv1.SubnetSelectorTerm{by("env", "*")}, want: "subnet-b subnet-c subnet-a"},
		{terms: []awsv1.SubnetSelectorTerm{by("env", "prod", "Name", "web-?")}, want: "subnet-a"},
		{terms: []awsv1.SubnetSelectorTerm{by("Name", "web-*")}, want: "subnet-c subnet-a"},
		{terms: []awsv1.SubnetSelectorTerm{by("Name", "web-??")}, want: "subnet-c"},
		{terms: []awsv1.SubnetSelectorTerm{by("Name", "WEB-1")}},
		{terms: []awsv1.SubnetSelectorTerm{by("a*b", `x\*y`)}, want: "subnet-d"},
		{terms: []awsv1.SubnetSelectorTerm{by("a*b", `x\?y`)}},
		{terms: []awsv1.SubnetSelectorTerm{by("a*b", "*x*y*")}, want: "subnet-d"},
		{terms: []awsv1.SubnetSelectorTerm{by("env", "prod"), {ID: "subnet-a"}, by("env", "t*t")},
			want: "subnet-b subnet-c subnet-a"},
	} {
		if got := ids(subnet.Select(c.terms, all)); got != c.want {
			t.Errorf("%v: %s, want %s", c.terms, got, c.want)
		}
	}
}

// E-11: security groups also by name.
func TestWhichGroupsAClassHas(t *testing.T) {
	t.Parallel()
	all := []subnet.Group{
		{ID: "sg-2", Name: "nodes"}, {ID: "sg-1", Name: "nodes-extra"},
		{ID: "sg-3", Tags: map[string]string{"a": "b"}},
	}
	for want, terms := range map[string][]awsv1.SecurityGroupSelectorTerm{
		"sg-2":           {{Name: "nodes"}},
		"sg-1 sg-2":      {{Name: "nodes*"}},
		"sg-3":           {{ID: "sg-3"}, {Tags: map[string]string{"a": "b"}}},
		"sg-1 sg-2 sg-3": {{ID: "sg-1"}, {ID: "sg-2"}, {ID: "sg-3"}},
	} {
		var got []string
		for _, g := range subnet.SelectGroups(terms, all) {
			got = append(got, g.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %v, want %s", terms, got, want)
		}
	}
}

// E-11: EC2's answers are read completely, and an empty answer causes no panic.
func TestAnswersAreRead(t *testing.T) {
	t.Parallel()
	tags := []ec2types.Tag{{Key: new("k"), Value: new("v")}}
	s := subnet.Of(ec2types.Subnet{
		SubnetId: new("subnet-1"), AvailabilityZone: new("a"), AvailabilityZoneId: new("az1"), VpcId: new("vpc-1"),
		AvailableIpAddressCount: new(int32(7)), Tags: tags,
	})
	want := subnet.Subnet{
		ID: "subnet-1", Zone: "a", ZoneID: "az1", VPC: "vpc-1", Free: 7, Tags: map[string]string{"k": "v"},
	}
	if fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", s, want)
	}
	g := subnet.GroupOf(ec2types.SecurityGroup{
		GroupId: new("sg-1"), GroupName: new("n"), VpcId: new("vpc-1"), Tags: tags,
	})
	if g.ID != "sg-1" || g.Name != "n" || g.VPC != "vpc-1" || g.Tags["k"] != "v" {
		t.Errorf("%+v", g)
	}
	if s := subnet.Of(ec2types.Subnet{}); s.ID != "" || s.Free != 0 {
		t.Errorf("of nothing: %+v", s)
	}
}

// E-11: subnets and groups of several VPCs are an error before a launch fails.
func TestVPCsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	in := func(vpc string, names ...string) (all []subnet.Subnet) {
		for _, name := range names {
			all = append(all, subnet.Subnet{ID: name, VPC: vpc})
		}
		return all
	}
	group := []subnet.Group{{ID: "sg-1", VPC: "vpc-1"}}
	for _, fine := range []string{
		subnet.Mismatch(in("vpc-1", "s1", "s2"), group), subnet.Mismatch(nil, group),
		subnet.Mismatch(in("vpc-1", "s1"), nil), subnet.Mismatch(nil, nil),
	} {
		if fine != "" {
			t.Errorf("one VPC: %s", fine)
		}
	}
	text := subnet.Mismatch(in("vpc-2", "s5", "s4", "s3", "s2", "s1"), group)
	for _, part := range []string{"vpc-2 (s1, s2, s3, and 2 more)", "vpc-1 (sg-1)", "subnetSelectorTerms"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in: %s", part, text)
		}
	}
	if subnet.Mismatch(append(in("vpc-1", "s1"), in("vpc-2", "s2")...), group) == "" {
		t.Error("subnets of two VPCs go together")
	}
}

// E-11: equal filter sets of several classes are queried once, and the ids of all classes together.
func TestEqualTermsAreAskedOnce(t *testing.T) {
	t.Parallel()
	prod, any := map[string]string{"env": "prod", "k": "*"}, map[string]string{"k": "*"}
	queries := subnet.SubnetQueries(map[string][]awsv1.SubnetSelectorTerm{
		"b": {{Tags: prod}, {ID: "subnet-2"}, {Tags: prod}},
		"a": {{Tags: prod}, {ID: "subnet-1"}, {ID: "subnet-2"}}, "c": {{Tags: any}, {}},
	})
	want :=
		"[{[{subnet-id [subnet-1 subnet-2]}] [a b]} {[{tag-key [k]}] [c]} {[{tag:env [prod]} {tag-key [k]}] [a b]}]"
	if fmt.Sprint(queries) != want {
		t.Errorf("%v, want %s", queries, want)
	}
	groups := subnet.GroupQueries(map[string][]awsv1.SecurityGroupSelectorTerm{
		"a": {{Name: "n"}, {ID: "sg-1"}}, "b": {{Name: "n"}},
	})
	if want := "[{[{group-id [sg-1]}] [a]} {[{group-name [n]}] [a b]}]"; fmt.Sprint(groups) != want {
		t.Errorf("%v, want %s", groups, want)
	}
	var many []awsv1.SubnetSelectorTerm
	for i := range 401 {
		many = append(many, awsv1.SubnetSelectorTerm{ID: fmt.Sprintf("subnet-%03d", i)})
	}
	if n := len(subnet.SubnetQueries(map[string][]awsv1.SubnetSelectorTerm{"a": many})); n != 3 {
		t.Errorf("401 ids take %d calls, want 3", n)
	}
}

// passes evaluates a query without wildcards like EC2.
func passes(q subnet.Query, s subnet.Subnet) bool {
	for _, f := range q.Filters {
		var has bool
		if key, of := strings.CutPrefix(f.Name, "tag:"); of {
			v, tagged := s.Tags[key]
			has = tagged && slices.Contains(f.Values, v)
		} else if f.Name == "tag-key" {
			_, has = s.Tags[f.Values[0]]
		} else {
			has = slices.Contains(f.Values, s.ID)
		}
		if !has {
			return false
		}
	}
	return true
}

// E-11, as a law: the answers to the queries for a class contain everything that its terms select; no two queries are
// equal; and 20 classes with equal terms need no more queries than one.
func TestQueriesAnswerAllTerms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"1", "2"}), 0, 2)
		var all []subnet.Subnet
		for i := range 12 {
			all = append(all, tagged(fmt.Sprint("subnet-", i), int64(i), tags.Draw(t, "tags")))
		}
		wanted := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"1", "2", "*"}), 1, 2)
		term := rapid.Custom(func(t *rapid.T) awsv1.SubnetSelectorTerm {
			if rapid.Bool().Draw(t, "by id") {
				return awsv1.SubnetSelectorTerm{ID: fmt.Sprint("subnet-", rapid.IntRange(0, 14).Draw(t, "id"))}
			}
			return awsv1.SubnetSelectorTerm{Tags: wanted.Draw(t, "wanted")}
		})
		classes := map[string][]awsv1.SubnetSelectorTerm{}
		terms := rapid.SliceOfN(term, 0, 4).Draw(t, "terms of many")
		for i := range 20 {
			classes[fmt.Sprint("same", i)] = terms
		}
		same := len(subnet.SubnetQueries(classes))
		if one := len(subnet.SubnetQueries(map[string][]awsv1.SubnetSelectorTerm{"one": terms})); same != one {
			t.Fatalf("20 classes with equal terms ask %d times, one %d times", same, one)
		}
		classes["other"] = rapid.SliceOfN(term, 0, 4).Draw(t, "terms")
		queries := subnet.SubnetQueries(classes)
		seen := map[string]bool{}
		answers := map[string][]subnet.Subnet{}
		for _, q := range queries {
			if key := fmt.Sprintf("%q", q.Filters); seen[key] {
				t.Fatalf("%v is asked twice", q)
			} else {
				seen[key] = true
			}
			for _, s := range all {
				if passes(q, s) {
					for _, class := range q.For {
						answers[class] = append(answers[class], s)
					}
				}
			}
		}
		for class, terms := range classes {
			if got, want := ids(subnet.Select(terms, answers[class])), ids(subnet.Select(terms, all)); got != want {
				t.Fatalf("%s with %v: %s, want %s", class, terms, got, want)
			}
		}
	})
}
