package iampolicy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

// policy has one statement, with fields in place of the usual ones; a field that is "" is left out.
func policy(fields map[string]string) string {
	all := map[string]string{"Effect": `"Allow"`, "Action": `"ec2:CreateTags"`, "Resource": `"*"`}
	for name, value := range fields {
		all[name] = value
	}
	var list []string
	for name, value := range all {
		if value != "" {
			list = append(list, fmt.Sprintf("%q: %s", name, value))
		}
	}
	return `{"Version": "2012-10-17", "Statement": [{` + strings.Join(list, ", ") + `}]}`
}

// E-58: unsupported input is an error that says what is allowed.
func TestWhatIsNotEvaluatedIsRefused(t *testing.T) {
	t.Parallel()
	condition := func(text string) string { return policy(map[string]string{"Condition": text}) }
	field := func(name, value string) string { return policy(map[string]string{name: value}) }
	for _, row := range [][2]string{
		{``, "unexpected end"},
		{`[]`, "cannot unmarshal"},
		{`{"Version":"2012-10-17"}`, "Statement"},
		{`{"Version":"2012-10-17","Statement":[]}`, "Statement is empty"},
		{`{"Version":"2008-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`, `Version is "2008-10-17"`},
		{`{"Version":"2012-10-17","version":"2012-10-17"}`, `"version" stands there twice`},
		{field("Principal", `"*"`), `field "Principal"`},
		{field("effect", `"Deny"`), "twice"},
		{field("Effect", `"allow"`), `Effect is "allow"; Allow or Deny`},
		{field("Action", ``), "one of Action and NotAction"},
		{field("NotAction", `"*"`), "one of Action and NotAction"},
		{field("NotResource", `"*"`), "one of Resource and NotResource"},
		{field("Action", `[]`), "an empty list"},
		{field("Action", `null`), "an empty list"},
		{field("Action", `"CreateTags"`), "service:Action is allowed"},
		{field("Action", `"ec2*:CreateTags"`), "service:Action is allowed"},
		{field("Resource", `"arn:aws:ec2:*"`), "arn:partition:service"},
		{field("Resource", `"arn:aws:*:us-east-1:1:instance/*"`), "the service of an ARN"},
		{field("Resource", `"arn:aws:ec2:${REGION}:1:instance/*"`), "placeholders have to be filled in"},
		{field("Sid", `"a b"`), "letters and digits"},
		{condition(`{"DateLessThan": {"aws:RequestedRegion": "x"}}`), "the operator is not evaluated"},
		{condition(`{"StringLike": {}}`), "is empty"},
		{condition(`{"StringLike": {"aws:SourceIp": "x"}}`), "the key is not evaluated"},
		{condition(`{"StringLike": {"aws:RequestTag/": "x"}}`), "the key is not evaluated"},
		{condition(`{"StringLike": {"aws:RequestedRegion": []}}`), "an empty list"},
		{condition(`{"StringLike": {"aws:TagKeys": "x"}}`), "ForAllValues: and ForAnyValue:"},
		{condition(`{"ForAnyValue:StringLike": {"aws:RequestedRegion": "x"}}`), "ForAllValues: and ForAnyValue:"},
		{condition(`{"StringEquals": {"aws:RequestTag/a": "${aws:PrincipalTag/a}"}}`), "variable"},
		{condition(`{"NullIfExists": {"aws:RequestTag/a": "true"}}`), "the operator is not evaluated"},
		{condition(`{"Null": {"aws:RequestTag/a": "maybe"}}`), "true or false"},
		{condition(`{"StringEquals": {"aws:RequestTag/a": "x", "aws:requesttag/A": "y"}}`), "twice"},
		{condition(`{"StringEquals": {"aws:RequestTag/a": "x"}, "StringEquals": {"aws:RequestTag/b": "y"}}`), "twice"},
		{policy(nil) + "x", "invalid character 'x'"},
	} {
		text, want := row[0], row[1]
		if _, err := iampolicy.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	twice := `{"Version":"2012-10-17","Statement":[{"Sid":"A","Effect":"Allow","Action":"*","Resource":"*"},` +
		`{"Sid":"A","Effect":"Allow","Action":"*","Resource":"*"}]}`
	if _, err := iampolicy.Parse([]byte(twice)); err == nil || !strings.Contains(err.Error(), "each Sid once") {
		t.Errorf("a Sid twice: error %v", err)
	}
}

// tagging is a request with every field.
func tagging() iampolicy.Request {
	return iampolicy.Request{
		Action: "ec2:CreateTags", Resource: "arn:aws:ec2:us-east-1:111122223333:instance/i-1",
		RequestTags:  map[string]string{"Name": "n1", "Team": "a"},
		ResourceTags: map[string]string{"pool": "p"},
		Context:      map[string]string{"aws:RequestedRegion": "us-east-1"},
	}
}

// E-58: conditions as AWS defines them, also where a request has no such key.
func TestConditions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"StringEquals": {"aws:RequestTag/Name": "n1"}}`: true,
		// keys have no case
		`{"StringEquals": {"AWS:requesttag/name": "n1"}}`:                       true,
		`{"StringEquals": {"aws:RequestTag/Name": "N1"}}`:                       false,
		`{"StringEqualsIgnoreCase": {"aws:RequestTag/Name": "N1"}}`:             true,
		`{"StringEquals": {"aws:RequestTag/Name": ["n0", "n1"]}}`:               true,
		`{"StringEquals": {"aws:RequestTag/Name": "n*"}}`:                       false,
		`{"StringLike": {"aws:RequestTag/Name": "n*"}}`:                         true,
		`{"StringLike": {"aws:RequestTag/none": "*"}}`:                          false,
		`{"StringLikeIfExists": {"aws:RequestTag/none": "x"}}`:                  true,
		`{"StringLikeIfExists": {"aws:RequestTag/Name": "x"}}`:                  false,
		`{"StringNotEquals": {"aws:RequestTag/none": "x"}}`:                     true,
		`{"StringNotEquals": {"aws:RequestTag/Name": ["x", "n1"]}}`:             false,
		`{"StringNotLike": {"aws:RequestTag/Name": "x*"}}`:                      true,
		`{"StringEquals": {"aws:ResourceTag/Name": "n1"}}`:                      false,
		`{"StringEquals": {"aws:ResourceTag/pool": "p"}}`:                       true,
		`{"StringEquals": {"aws:RequestedRegion": "us-east-1"}}`:                true,
		`{"StringEquals": {"ec2:CreateAction": "RunInstances"}}`:                false,
		`{"Null": {"ec2:CreateAction": "true"}}`:                                true,
		`{"Null": {"ec2:CreateAction": "false"}}`:                               false,
		`{"Null": {"aws:TagKeys": "false"}}`:                                    true,
		`{"ForAllValues:StringEquals": {"aws:TagKeys": ["Name", "Team", "x"]}}`: true,
		`{"ForAllValues:StringEquals": {"aws:TagKeys": ["Name", "x"]}}`:         false,
		`{"ForAnyValue:StringEquals": {"aws:TagKeys": ["Name", "x"]}}`:          true,
		`{"ForAnyValue:StringEquals": {"aws:TagKeys": "x"}}`:                    false,
		`{"ForAllValues:StringNotEquals": {"aws:TagKeys": "x"}}`:                true,
		`{"ForAllValues:StringNotEquals": {"aws:TagKeys": "Name"}}`:             false,
		`{"ForAnyValue:StringNotEquals": {"aws:TagKeys": "Name"}}`:              true,
		`{"ArnLike": {"aws:RequestTag/Name": "arn:aws:ec2:*:*:instance/*"}}`:    false,
		`{"ArnNotLike": {"aws:RequestTag/Name": "arn:aws:ec2:*:*:instance/*"}}`: true,
		// all have to hold
		`{"StringLike": {"aws:RequestTag/Name": "*"}, "Null": {"aws:RequestTag/Name": "true"}}`: false,
	} {
		p, err := iampolicy.Parse([]byte(policy(map[string]string{"Condition": text})))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := p.Decide(tagging()); got.Allowed != want || got.Allowed != (len(got.Rights) > 0) {
			t.Errorf("%s: %+v, want %v", text, got, want)
		}
	}
	bare := tagging()
	bare.RequestTags = nil
	for text, want := range map[string]bool{
		`{"ForAllValues:StringEquals": {"aws:TagKeys": "x"}}`:   true, // of no values all are
		`{"ForAnyValue:StringEquals": {"aws:TagKeys": "x"}}`:    false,
		`{"ForAnyValue:StringNotEquals": {"aws:TagKeys": "x"}}`: false,
		`{"Null": {"aws:TagKeys": "true"}}`:                     true,
	} {
		p, err := iampolicy.Parse([]byte(policy(map[string]string{"Condition": text})))
		if err != nil || p.Decide(bare).Allowed != want {
			t.Errorf("%s without tags: want %v, error %v", text, want, err)
		}
	}
}

// E-58: actions match regardless of case, resources part by part, and a Deny always denies.
func TestActionsAndResources(t *testing.T) {
	t.Parallel()
	const deny = `{"Effect":"Deny","Action":"ec2:*","Resource":"arn:aws:ec2:us-west-2:1:instance/*"}`
	for name, c := range map[string]struct {
		statements       string
		action, resource string
		want             bool
	}{
		"exact": {`{"Effect":"Allow","Action":"ec2:RunInstances","Resource":"*"}`, "ec2:RunInstances", "*",
			true},
		"case": {`{"Effect":"Allow","Action":"ec2:runinstances","Resource":"*"}`, "ec2:RunInstances", "*",
			true},
		"another": {`{"Effect":"Allow","Action":"ec2:RunInstances","Resource":"*"}`, "ec2:CreateFleet", "*",
			false},
		"pattern": {`{"Effect":"Allow","Action":["ec2:Run*","ec2:Create?leet"],"Resource":"*"}`,
			"ec2:CreateFleet", "*", true},
		"another service": {`{"Effect":"Allow","Action":"ec2:*","Resource":"*"}`, "iam:PassRole", "*", false},
		"all":             {`{"Effect":"Allow","Action":"*","Resource":"*"}`, "iam:PassRole", "*", true},
		"not": {`{"Effect":"Allow","NotAction":["iam:*","sqs:*"],"Resource":"*"}`, "ec2:CreateFleet", "*",
			true},
		"not this": {`{"Effect":"Allow","NotAction":["iam:*","sqs:*"],"Resource":"*"}`, "sqs:SendMessage", "*",
			false},
		"resource": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:*:*:subnet/*"}`,
			"ec2:CreateFleet", "arn:aws:ec2:x:1:subnet/s", true},
		"resource's case": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:*:*:subnet/*"}`,
			"ec2:CreateFleet", "arn:aws:ec2:x:1:Subnet/s", false},
		"another region": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:y:*:subnet/*"}`,
			"ec2:CreateFleet", "arn:aws:ec2:x:1:subnet/s", false},
		"beyond its part": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:*:1:1:i"}`, "ec2:A",
			"arn:aws:ec2:a:b:1:1:i", false},
		"no resource": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:*:*:subnet/*"}`,
			"ec2:CreateFleet", "*", false},
		"not the resource": {`{"Effect":"Allow","Action":"*","NotResource":"arn:aws:ec2:x:1:*"}`, "ec2:CreateFleet",
			"arn:aws:ec2:x:1:subnet/s", false},
		"other resource": {`{"Effect":"Allow","Action":"*","NotResource":"arn:aws:ec2:y:1:*"}`, "ec2:CreateFleet",
			"arn:aws:ec2:x:1:subnet/s", true},
		"denied": {deny + `,{"Effect":"Allow","Action":"*","Resource":"*"}`, "ec2:A",
			"arn:aws:ec2:us-west-2:1:instance/i", false},
		"denied, last": {`{"Effect":"Allow","Action":"*","Resource":"*"},` + deny, "ec2:A",
			"arn:aws:ec2:us-west-2:1:instance/i", false},
		"not denied": {deny + `,{"Effect":"Allow","Action":"*","Resource":"*"}`, "ec2:A",
			"arn:aws:ec2:us-west-1:1:instance/i", true},
		"denied widely": {
			`{"Effect":"Deny","Action":"*","Resource":"arn:aws:ec2:*:1:1:i"},{"Effect":"Allow","Action":"*","Resource":"*"}`,
			"ec2:A", "arn:aws:ec2:a:b:1:1:i", false},
	} {
		p, err := iampolicy.Parse([]byte(`{"Version":"2012-10-17","Statement":[` + c.statements + `]}`))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := p.Decide(iampolicy.Request{Action: c.action, Resource: c.resource})
		if got.Allowed != c.want || strings.HasPrefix(name, "denied") != (got.Denied != "") {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}

const two = `{"Version":"2012-10-17","Statement":[
	{"Sid":"Launch","Effect":"Allow","Action":["ec2:RunInstances","ec2:CreateFleet","ec2:Unused"],
	 "Resource":["arn:aws:ec2:x:1:image/*","arn:aws:ec2:x:1:fleet/*"],
	 "Condition":{"StringEquals":{"ec2:CreateAction":["A","B"]}}},
	{"Sid":"No","Effect":"Deny","Action":"*","Resource":"arn:aws:s3:::b"}]}`

// E-58: the rights of a policy, those that a request uses, and a policy of only these.
func TestRights(t *testing.T) {
	t.Parallel()
	p, err := iampolicy.Parse([]byte(two))
	if err != nil {
		t.Fatal(err)
	}
	if all := p.Rights(); len(all) != 3*2+2 ||
		all[0].String() != "Launch: ec2:RunInstances on arn:aws:ec2:x:1:image/*" {
		t.Errorf("%v", all)
	}
	used := map[iampolicy.Right]bool{}
	for action, resource := range map[string]string{"ec2:RunInstances": "image/1", "ec2:CreateFleet": "fleet/1"} {
		d := p.Decide(iampolicy.Request{Action: action, Resource: "arn:aws:ec2:x:1:" + resource,
			Context: map[string]string{"ec2:CreateAction": "B"}})
		for _, r := range d.Rights {
			used[r] = true
		}
	}
	if len(used) != 3 || !used[iampolicy.Right{Statement: "Launch", What: `StringEquals ec2:CreateAction = "B"`}] {
		t.Errorf("%v", used)
	}
	small, err := iampolicy.Only([]byte(two), func(r iampolicy.Right) bool { return used[r] })
	if err != nil {
		t.Fatal(err)
	}
	again, err := iampolicy.Parse(small)
	if err != nil {
		t.Fatalf("%v\n%s", err, small)
	}
	var names []string
	for _, r := range again.Rights() {
		names = append(names, r.String())
	}
	const want = `Launch1: ec2:RunInstances on arn:aws:ec2:x:1:image/*|Launch1: StringEquals ec2:CreateAction = "A"|` +
		`Launch1: StringEquals ec2:CreateAction = "B"|Launch2: ec2:CreateFleet on arn:aws:ec2:x:1:fleet/*|` +
		`Launch2: StringEquals ec2:CreateAction = "A"|Launch2: StringEquals ec2:CreateAction = "B"`
	if got := strings.Join(names, "|"); got != want || !strings.Contains(string(small), `"Deny"`) {
		t.Errorf("%s\n%s", got, small)
	}
	if _, err := iampolicy.Only([]byte(policy(map[string]string{"Action": "", "NotAction": `"a:B"`})),
		nil); err == nil {
		t.Error("a part of a NotAction was taken out")
	}
}

// FuzzPolicies: for any policy, reading and deciding terminate, and a policy without an Allow allows nothing.
func FuzzPolicies(f *testing.F) {
	f.Add([]byte(two), "ec2:CreateFleet", "arn:aws:ec2:x:1:fleet/1")
	f.Add([]byte(policy(nil)), "ec2:CreateTags", "*")
	f.Add([]byte(policy(map[string]string{"Condition": `{"ForAllValues:StringLike": {"aws:TagKeys": "N*a?e"}}`})),
		"ec2:CreateTags", "*")
	f.Add([]byte(`{"a":[{"b":{}}]}`), "", "")
	f.Fuzz(func(t *testing.T, text []byte, action, resource string) {
		p, err := iampolicy.Parse(text)
		_, _ = iampolicy.Only(text, func(r iampolicy.Right) bool { return len(r.What)%2 == 0 })
		if err != nil {
			return
		}
		r := tagging()
		r.Action, r.Resource = action, resource
		if d := p.Decide(r); d.Allowed &&
			(d.Denied != "" || !strings.Contains(string(text), "Allow") && !strings.Contains(string(text), `\u`)) {
			t.Errorf("%s: %+v", text, d)
		}
	})
}
