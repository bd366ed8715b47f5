package ec2test_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// single is a configuration whose clients try every call once.
func single(s *ec2test.Server) aws.Config {
	config := s.Config()
	config.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	return config
}

// E-07: public parameters, one by one, several at once and by path.
func TestParameters(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw, PageSize: 1})
	const path = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/"
	s.SetParameter(path+"recommended/image_id", "ami-1")
	s.SetParameter(path+"other/image_id", "ami-2")
	c := ssm.NewFromConfig(single(s))
	one, err := c.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String(path + "recommended/image_id")})
	if err != nil || *one.Parameter.Value != "ami-1" {
		t.Errorf("%+v %v", one, err)
	}
	_, err = c.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/none")})
	wantCode(t, err, "ParameterNotFound")
	some, err := c.GetParameters(t.Context(),
		&ssm.GetParametersInput{Names: []string{path + "other/image_id", "/none"}})
	if err != nil || len(some.Parameters) != 1 || !slices.Equal(some.InvalidParameters, []string{"/none"}) {
		t.Errorf("%+v %v", some, err)
	}
	var values []string
	in := &ssm.GetParametersByPathInput{Path: aws.String(path), Recursive: aws.Bool(true)}
	for p := ssm.NewGetParametersByPathPaginator(c, in); p.HasMorePages(); {
		out, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, parameter := range out.Parameters {
			values = append(values, *parameter.Value)
		}
	}
	if !slices.Equal(values, []string{"ami-2", "ami-1"}) {
		t.Errorf("by path: %v", values)
	}
}

// E-51: a queue delivers each message for a limited time, and delivers news at once to a waiting request.
func TestQueues(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	s.AddQueue("events")
	c := sqs.NewFromConfig(single(s))
	found, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("events")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	if err == nil || !strings.Contains(err.Error(), "QueueDoesNotExist") {
		t.Errorf("%v, want that the queue does not exist", err)
	}
	receive := func(wait int32) []sqstypes.Message {
		t.Helper()
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: found.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: wait, VisibilityTimeout: 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Messages
	}
	if got := receive(0); len(got) != 0 {
		t.Errorf("%v from an empty queue", got)
	}
	waiting := make(chan []sqstypes.Message)
	s.Forget()
	go func() { waiting <- receive(20) }()
	for s.Counts()["sqs:ReceiveMessage"] == 0 {
		runtime.Gosched() // until it has found nothing and waits
	}
	s.Send("events", "one")
	first := <-waiting
	if len(first) != 1 || *first[0].Body != "one" {
		t.Fatalf("received %+v", first)
	}
	if got := receive(0); len(got) != 0 {
		t.Errorf("%+v is in flight", got)
	}
	s.Advance(20 * time.Second)
	second := receive(0)
	if len(second) != 1 {
		t.Fatalf("%+v, want the message again after its visibility", second)
	}
	for _, c2 := range []struct {
		handle *string
		left   int
	}{{first[0].ReceiptHandle, 1}, {second[0].ReceiptHandle, 0}} {
		if _, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: found.QueueUrl,
			ReceiptHandle: c2.handle}); err != nil {
			t.Error(err)
		}
		if n := s.Messages("events"); n != c2.left {
			t.Errorf("%d messages, want %d", n, c2.left)
		}
	}
}

// E-51, E-52: the events of an instance arrive in the queue in EventBridge's form.
func TestInstancesTellQueues(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	url := a.AddQueue("events")
	id := a.launch(a.fleet(1, spot, "c5.large")).Instances[0].InstanceIds[0]
	a.Advance(time.Minute)
	a.Interrupt(id)
	a.Advance(3 * time.Minute)
	out, err := sqs.NewFromConfig(single(a.Server)).ReceiveMessage(t.Context(),
		&sqs.ReceiveMessageInput{QueueUrl: &url,
			MaxNumberOfMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range out.Messages {
		var event struct {
			Kind   string            `json:"detail-type"`
			Detail map[string]string `json:"detail"`
		}
		if err := json.Unmarshal([]byte(*m.Body), &event); err != nil {
			t.Fatal(err)
		}
		if event.Detail["instance-id"] != id {
			t.Errorf("%s is of another instance", *m.Body)
		}
		got = append(got, strings.TrimPrefix(event.Kind, "EC2 ")+" "+event.Detail["state"])
	}
	want := []string{
		"Instance State-change Notification running", "Spot Instance Interruption Warning ",
		"Instance State-change Notification shutting-down", "Instance State-change Notification terminated",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// E-24: prices by filters, on as many pages as it takes.
func TestPrices(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	s.SetPrice("c5.large", 0.085)
	filter := func(field, value string) pricingtypes.Filter {
		return pricingtypes.Filter{Field: &field, Value: &value, Type: pricingtypes.FilterTypeTermMatch}
	}
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: []pricingtypes.Filter{
		filter("regionCode", "us-east-1"), filter("operatingSystem", "Linux"), filter("tenancy", "Shared"),
		filter("preInstalledSw", "NA"),
	}}
	lines := 0
	for p := pricing.NewGetProductsPaginator(pricing.NewFromConfig(single(s)), in); p.HasMorePages(); {
		out, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range out.PriceList {
			lines++
			if strings.Contains(line, `"instanceType":"c5.large"`) && !strings.Contains(line, `"USD":"0.0850000000"`) {
				t.Errorf("c5.large has another price: %s", line)
			}
		}
	}
	if n := s.Counts()["pricing:GetProducts"]; lines < 1000 || n != (lines+99)/100 {
		t.Errorf("%d lines in %d calls", lines, n)
	}
}

// E-40: the life of an instance profile, and that it cannot be used at once.
func TestInstanceProfiles(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{ProfileDelay: seconds(10)})
	a.AddRole("nodes")
	c := iam.NewFromConfig(single(a.Server))
	name, path, role := aws.String("p1"), aws.String("/karpenter/us-east-1/c1/uid/"), aws.String("nodes")
	tags := []iamtypes.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
	_, err := c.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "NoSuchEntity")
	create := &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: path, Tags: tags}
	_, err = c.CreateInstanceProfile(t.Context(), create)
	wantCode(t, err, "")
	_, err = c.CreateInstanceProfile(t.Context(), create)
	wantCode(t, err, "EntityAlreadyExists")
	_, err = c.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name,
		RoleName: aws.String("none")})
	wantCode(t, err, "NoSuchEntity")
	_, err = c.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name,
		RoleName: role})
	wantCode(t, err, "")
	got, err := c.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: name})
	if err != nil || *got.InstanceProfile.Roles[0].RoleName != "nodes" || *got.InstanceProfile.Path != *path ||
		len(got.InstanceProfile.Tags) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	a.template("p1", func(d *ec2types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: name}
	})
	in := a.fleet(1, onDemand, "c5.large")
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("karpenter.k8s.aws/p1")
	if got := taken(a.launch(in)); !strings.HasPrefix(got, "InvalidParameterValue") {
		t.Errorf("a new profile was used at once: %s", got)
	}
	a.Advance(10 * time.Second)
	in.ClientToken = nil // which the SDK has filled in, and which stands for the answer above
	if got := taken(a.launch(in)); got != "1 c5.large/us-east-1a" {
		t.Errorf("after ten seconds: %s", got)
	}
	list, err := c.ListInstanceProfiles(t.Context(),
		&iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/us-east-1/c1/")})
	if err != nil || len(list.InstanceProfiles) != 1 || list.IsTruncated {
		t.Errorf("%+v %v", list, err)
	}
	_, err = c.DeleteInstanceProfile(t.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "DeleteConflict")
	_, err = c.RemoveRoleFromInstanceProfile(t.Context(),
		&iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: role})
	wantCode(t, err, "")
	_, err = c.DeleteInstanceProfile(t.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "")
}

// E-16, E-79: EKS' answers about a known and an unknown cluster.
func TestClusters(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	s.AddCluster(ec2test.Cluster{Name: "c1", Version: "1.33", Endpoint: "https://c1", CA: "Q0E=",
		CIDR: "10.100.0.0/16"})
	c := eks.NewFromConfig(single(s))
	out, err := c.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("c1")})
	if err != nil || *out.Cluster.Version != "1.33" ||
		*out.Cluster.KubernetesNetworkConfig.ServiceIpv4Cidr != "10.100.0.0/16" ||
		*out.Cluster.CertificateAuthority.Data != "Q0E=" {
		t.Errorf("%+v %v", out, err)
	}
	_, err = c.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("none")})
	wantCode(t, err, "ResourceNotFoundException")
}

// E-41, E-58: every service refuses in its own protocol.
func TestRefusalsInEveryProtocol(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	url := s.AddQueue("q")
	calls := map[string]func(aws.Config) error{
		"ec2": func(c aws.Config) error {
			_, err := ec2.NewFromConfig(c).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
			return err
		},
		"ssm": func(c aws.Config) error {
			_, err := ssm.NewFromConfig(c).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/x")})
			return err
		},
		"sqs": func(c aws.Config) error {
			_, err := sqs.NewFromConfig(c).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
			return err
		},
		"pricing": func(c aws.Config) error {
			_, err := pricing.NewFromConfig(c).GetProducts(t.Context(),
				&pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")})
			return err
		},
		"iam": func(c aws.Config) error {
			_, err := iam.NewFromConfig(c).GetInstanceProfile(t.Context(),
				&iam.GetInstanceProfileInput{InstanceProfileName: aws.String("x")})
			return err
		},
		"eks": func(c aws.Config) error {
			_, err := eks.NewFromConfig(c).DescribeCluster(t.Context(),
				&eks.DescribeClusterInput{Name: aws.String("x")})
			return err
		},
	}
	try := func(config aws.Config, want func(service string) string) {
		t.Helper()
		for name, call := range calls {
			if got := code(call(config)); got != want(name) {
				t.Errorf("%s: %s, want %s", name, got, want(name))
			}
		}
	}
	by := func(ec2, iam, others string) func(string) string {
		return func(name string) string {
			switch name {
			case "ec2":
				return ec2
			case "iam":
				return iam
			}
			return others
		}
	}
	s.Deny(func(ec2test.Ask) string { return "because no session policy allows it" })
	try(single(s), by("UnauthorizedOperation", "AccessDenied", "AccessDeniedException"))
	s.Deny(nil)
	if err := s.SetFaults(ec2test.Faults{Throttle: map[string]ec2test.Bucket{"*": {}}}); err != nil {
		t.Fatal(err)
	}
	try(single(s), by("RequestLimitExceeded", "Throttling", "ThrottlingException"))
	s.Skew(time.Hour)
	try(single(s), by("RequestExpired", "RequestExpired", "InvalidSignatureException"))
}
