package ec2test_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// raw is the reason why the requests of most tests here are not checked against policies.
const raw = "the endpoint itself is tested, with requests that no controller makes"

func client(s *ec2test.Server, changes ...func(*ec2.Options)) *ec2.Client {
	return ec2.NewFromConfig(s.Config(), append([]func(*ec2.Options){once}, changes...)...)
}

// once tries every call once, so that a test sees each answer.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// code returns the code of a refusal; "" on success.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("the call ended with %q (%v), want %q", got, err, want)
	}
}

// E-63: signatures are computed anew, and refused with AWS's codes.
func TestSignaturesAreChecked(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	describe := func(config aws.Config) error {
		_, err := ec2.NewFromConfig(config, once).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		return err
	}
	keys := func(id, secret string) aws.Config {
		config := s.Config()
		config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}, nil
		})
		return config
	}
	wantCode(t, describe(s.Config()), "")
	wantCode(t, describe(keys(ec2test.AccessKey, "another")), "SignatureDoesNotMatch")
	wantCode(t, describe(keys("AKIAUNKNOWN", "another")), "AuthFailure")
	other := s.Config()
	other.Region = "eu-west-1"
	wantCode(t, describe(other), "AuthFailure")
	for _, skew := range []time.Duration{16 * time.Minute, -16 * time.Minute} {
		s.Skew(skew)
		wantCode(t, describe(s.Config()), "RequestExpired")
	}
	s.Skew(14 * time.Minute)
	wantCode(t, describe(s.Config()), "")
}

// E-67: a client with a wrong clock learns the server's from the answer, and the SDK signs by that.
func TestTheSDKCorrectsItsClockByTheAnswers(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw, Faults: ec2test.Faults{SkewCode: "AuthFailure"}})
	s.Skew(time.Hour)
	_, err := ec2.NewFromConfig(s.Config()).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	wantCode(t, err, "")
}

// E-63: a request that was changed on its way is refused.
func TestAChangedRequestIsRefused(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	config := s.Config()
	config.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
		r.URL.RawQuery = url.Values{"DryRun": {"true"}}.Encode()
		return http.DefaultClient.Do(r)
	})
	_, err := ec2.NewFromConfig(config, once).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	wantCode(t, err, "SignatureDoesNotMatch")
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// E-63: the endpoint reports unknown requests to the caller and to the test.
func TestWhatTheEndpointDoesNotKnowFailsTheTest(t *testing.T) {
	t.Parallel()
	var told []string
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw, Unknown: func(text string) { told = append(told, text) }})
	_, err := client(s).DescribeInstances(t.Context(),
		&ec2.DescribeInstancesInput{IncludeManagedResources: aws.Bool(true)})
	wantCode(t, err, "UnknownParameter")
	if len(told) != 1 || !strings.Contains(told[0], "IncludeManagedResources") || !strings.Contains(told[0],
		"DescribeInstances") {
		t.Errorf("told: %q, want the action and the parameter", told)
	}
	_, err = client(s).DescribeKeyPairs(t.Context(), &ec2.DescribeKeyPairsInput{})
	wantCode(t, err, "UnknownParameter")
	if len(told) != 2 || !strings.Contains(told[1], "ec2:DescribeKeyPairs") {
		t.Errorf("told: %q, want the action", told)
	}
	filter := ec2types.Filter{Name: aws.String("no-such"), Values: []string{"x"}}
	_, err = client(s).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filter}})
	wantCode(t, err, "InvalidParameterValue")
}

// E-17, E-63: every instance type arrives through the SDK as the data file has it, whatever the pages.
func TestInstanceTypesArriveWhole(t *testing.T) {
	t.Parallel()
	want := ec2test.Types(t)
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	pages, got := 0, map[string]ec2types.InstanceTypeInfo{}
	for p := ec2.NewDescribeInstanceTypesPaginator(client(s),
		&ec2.DescribeInstanceTypesInput{}); p.HasMorePages(); pages++ {
		out, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range out.InstanceTypes {
			got[string(info.InstanceType)] = info
		}
	}
	if pages < 10 || len(got) < 1000 {
		t.Errorf("%d types on %d pages", len(got), pages)
	}
	for name, info := range got {
		if !reflect.DeepEqual(info, want[name]) {
			t.Fatalf("%s arrived as\n%s\nwant\n%s", name, asJSON(t, info), asJSON(t, want[name]))
		}
	}
	if counts := s.Counts(); counts["ec2:DescribeInstanceTypes"] != pages {
		t.Errorf("%v, want %d calls", counts, pages)
	}
}

func asJSON(t *testing.T, of any) string {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// E-17: all offerings of the zones in few calls; with pages of one, a call for each, and the same answer.
func TestListingsArePaged(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	all := func(filters ...ec2types.Filter) []string {
		in := &ec2.DescribeInstanceTypeOfferingsInput{LocationType: ec2types.LocationTypeAvailabilityZone,
			Filters: filters}
		var list []string
		for p := ec2.NewDescribeInstanceTypeOfferingsPaginator(client(s), in); p.HasMorePages(); {
			out, err := p.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out.InstanceTypeOfferings {
				list = append(list, string(o.InstanceType)+"/"+*o.Location)
			}
		}
		return list
	}
	if n := len(all()); n < 4000 {
		t.Errorf("%d offerings", n)
	}
	if n := s.Counts()["ec2:DescribeInstanceTypeOfferings"]; n > 11 {
		t.Errorf("%d calls; E-17 allows 25 with the types", n)
	}
	one := ec2types.Filter{Name: aws.String("instance-type"), Values: []string{"m5.*"}}
	want := all(one)
	s.Forget()
	s.SetPageSize(1)
	if got := all(one); !slices.Equal(got, want) || len(got) < 10 {
		t.Errorf("with pages of one: %v, want %v", got, want)
	}
	if n := s.Counts()["ec2:DescribeInstanceTypeOfferings"]; n != len(want) {
		t.Errorf("%d calls for %d offerings with pages of one", n, len(want))
	}
}

// E-63: the record has the values for a policy's conditions.
func TestRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	s.Deny(func(a ec2test.Ask) string {
		if a.Action == "ec2:CreateTags" && a.Context["ec2:CreateAction"] == "CreateLaunchTemplate" {
			return "with an explicit deny in a service control policy"
		}
		return ""
	})
	tags := []ec2types.TagSpecification{{
		ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: []ec2types.Tag{{Key: aws.String("a"),
			Value: aws.String("b")}},
	}}
	_, err := client(s).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("karpenter.k8s.aws/1"), TagSpecifications: tags,
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{},
	})
	wantCode(t, err, "UnauthorizedOperation")
	if err == nil || !strings.Contains(err.Error(), "service control policy") || !strings.Contains(err.Error(),
		"ec2:CreateTags") {
		t.Errorf("%v, want action and cause", err)
	}
	calls := s.Calls()
	if len(calls) != 1 || calls[0].Action != "CreateLaunchTemplate" || calls[0].Code != "UnauthorizedOperation" {
		t.Fatalf("recorded: %+v", calls)
	}
	if asks := calls[0].Asks; len(asks) != 2 || asks[0].RequestTags["a"] != "b" ||
		asks[0].Resource != "arn:aws:ec2:us-east-1:111122223333:launch-template/*" {
		t.Errorf("asked: %+v", asks)
	}
}
