package plug

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

var rewrite = flag.Bool("rewrite", false, "write what the program says into the page")

// badInputs is the page that shows the texts, below markers of the form <!-- says: NAME -->.
const badInputs = "../../../../docs/aws-bad-input.md"

const validation = karpenterv1.ConditionTypeValidationSucceeded

// badInput is an invalid input, and where its error appears.
type badInput struct {
	name     string // as the page has it; begins with the id of the specification
	pool     *karpenterv1.NodePool
	settings func(*settings)
	class    func(*awsv1.EC2NodeClass)
	prepare  func(*region)
	tried    bool     // by dry runs, which takes types
	told     string   // the type of a condition; ready, event, log or collector
	as       string   // the input that the same is told of; "" for one that the page shows
	want     []string // what the text has to have, the reason first
}

// E-65 to E-79: the error of each bad input appears where the page says, with the page's reason and text. `make
// rewrite` puts them there.
func TestBadInputIsTold(t *testing.T) {
	t.Parallel()
	said := make([]string, len(badInputTable()))
	t.Run("inputs", func(t *testing.T) {
		for i, each := range badInputTable() {
			t.Run(each.name, func(t *testing.T) {
				t.Parallel()
				said[i] = each.say(t)
				if strings.Contains(said[i], "my-secret") {
					t.Errorf("user data is repeated: %s", said[i])
				}
				for _, want := range each.want {
					if !strings.Contains(said[i], want) {
						t.Errorf("%q is not in:\n%s", want, said[i])
					}
				}
			})
		}
	})
	texts := map[string]string{}
	for i, each := range badInputTable() {
		if each.as == "" {
			texts[each.name] = said[i]
		} else if said[i] != texts[each.as] {
			t.Errorf("%s: said is %q, want the same as of %s", each.name, said[i], each.as)
		}
	}
	showPage(t, texts)
}

// say causes the input and returns the error, without the parts that change from run to run.
func (b badInput) say(t *testing.T) string {
	var changes []func(*awsv1.EC2NodeClass)
	if b.class != nil {
		changes = append(changes, b.class)
	}
	objects := []client.Object{aClass("default", changes...)}
	if b.pool != nil {
		objects = append(objects, b.pool)
	}
	r := newRegion(t, b.settings, objects...)
	var logged strings.Builder
	r.deps.Log = funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{})
	if b.prepare != nil {
		b.prepare(r)
	}
	if _, err := (connector{r.link, t.Context()}).Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if c := r.connected(); c != nil {
		if b.tried { // without types nothing is
			_, _ = newOffers(r.link).step(t.Context(), c)
		}
		if r.settings.queue != "" {
			_, _ = newReader(r.link).step(t.Context(), c)
		}
	}
	r.look()
	switch b.told {
	case "ready":
		return steady(r.ready())
	case "event":
		return steady(strings.Join(r.events, "\n"))
	case "log":
		text := logged.String()
		text, _, _ = strings.Cut(text[strings.LastIndex(text, `"msg"="`)+len(`"msg"="`):], `" "`)
		return steady(strings.ReplaceAll(text, `\"`, `"`))
	case "collector":
		return steady(r.collect())
	}
	c := r.condition("default", b.told)
	return steady(fmt.Sprintf("%s is %s, %s: %s", b.told, c.Status, c.Reason, c.Message))
}

// steady replaces the parts that differ from run to run.
func steady(text string) string {
	for _, each := range []struct{ pattern, by string }{
		{`\b(ami|subnet|sg|cr|snap|lt|vpc|i)-[0-9a-f]{17}\b`, "$1-0123456789abcdef0"},
		{`joiner-us-east-1-[0-9a-f]{40}`, "joiner-us-east-1-0123456789abcdef0123456789abcdef01234567"},
		{`karpenter\.k8s\.aws/[0-9a-f]{32}`, "karpenter.k8s.aws/0123456789abcdef0123456789abcdef"},
		{`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "2026-11-02T09:00:00Z"},
		{`req-[0-9a-f-]+`, "req-0"},
	} {
		text = regexp.MustCompile(each.pattern).ReplaceAllString(text, each.by)
	}
	return text
}

// showPage checks that the page shows the texts, word for word.
func showPage(t *testing.T, said map[string]string) {
	content, err := os.ReadFile(badInputs)
	if err != nil {
		t.Fatal(err)
	}
	marker := regexp.MustCompile("(?s)<!-- says: (.*?) -->\n```text\n.*?```\n")
	shown := map[string]bool{}
	want := marker.ReplaceAllStringFunc(string(content), func(block string) string {
		name := marker.FindStringSubmatch(block)[1]
		if said[name] == "" {
			t.Errorf("the page asks for %q, which is not in the table of this test", name)
		}
		shown[name] = true
		return "<!-- says: " + name + " -->\n```text\n" + wrap(said[name]) + "\n```\n"
	})
	for name := range said {
		if !shown[name] {
			t.Errorf("the page has no marker for %q", name)
		}
	}
	if t.Failed() || want == string(content) {
		return
	}
	if *rewrite {
		if err := os.WriteFile(badInputs, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not show what is said; run `make rewrite` and read the diff", badInputs)
}

// wrap breaks a text into lines of at most 120 characters, where a word allows it.
func wrap(text string) string {
	const width = 120
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// badInputTable has the inputs in the order of the specification.
func badInputTable() []badInput {
	list := append(unreachable(), network()...)
	list = append(list, roles()...)
	list = append(list, machinesThatCannotBe()...)
	return append(list, services()...)
}

// unreachable are inputs with which AWS cannot be called.
func unreachable() []badInput {
	without := func(config aws.Config) func(*region) {
		return func(r *region) { r.link.load = func(context.Context) (aws.Config, error) { return config, nil } }
	}
	none := aws.Config{Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no EC2 IMDS role found")
		})}
	nowhere := aws.Config{HTTPClient: nobody{}, Credentials: aws.AnonymousCredentials{}}
	return []badInput{
		{name: "E-65, the readiness probe", prepare: without(none), told: "ready",
			want: []string{ReasonCredentials, "Tried were", "Pod Identity", "IRSA"}},
		{name: "E-65, an event on each class", prepare: without(none), told: "event",
			want: []string{ReasonCredentials, "IRSA"}},
		{name: "E-65, a class without a status", prepare: without(none), told: ready,
			want: []string{ReasonCredentials, "IRSA"}},
		{name: "E-66", prepare: without(nowhere), told: "ready", want: []string{ReasonRegion, "AWS_REGION"}},
		{name: "E-67", told: resolve.SubnetsReady, prepare: func(r *region) { r.server.Skew(time.Hour) },
			want: []string{resolve.SignatureRefused, "60 min behind"}},
		{name: "E-67, a class that was resolved", told: resolve.SubnetsReady, prepare: func(r *region) {
			r.connectNow()
			r.look()
			r.later = 14 * time.Minute
			r.server.Skew(-time.Hour)
		}, want: []string{"True", "last seen 14 min ago", "60 min ahead"}},
	}
}

// network are inputs with which nothing is found.
func network() []badInput {
	deny := func(action string) func(*region) {
		return func(r *region) { r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: action}}}) }
	}
	wrong := map[string]string{"karpenter.sh/discovery": "c2"}
	alias := func(text string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: text}} }
	}
	return []badInput{
		{name: "E-68, subnets", class: func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms[0].Tags = wrong },
			told: resolve.SubnetsReady, want: []string{resolve.SubnetsNotFound, "karpenter.sh/discovery=c2",
				"has 2 in us-east-1"}},
		{name: "E-68, security groups", class: func(c *awsv1.EC2NodeClass) {
			c.Spec.SecurityGroupSelectorTerms[0].Tags = wrong
		},
			told: resolve.SecurityGroupsReady,
			want: []string{resolve.SecurityGroupsNotFound, "karpenter.sh/discovery=c2", "has 1 in us-east-1"}},
		{name: "E-68, not allowed", prepare: deny("ec2:DescribeSubnets"), told: resolve.SubnetsReady,
			want: []string{resolve.Unauthorized, "ec2:DescribeSubnets"}},
		{name: "E-69, an alias", class: alias("al2023@v20200101"), told: resolve.AMIsReady,
			want: []string{
				resolve.AMINotFound, "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/",
			}},
		{name: "E-69, an image", class: func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.AMISelectorTerms = new("AL2023"),
				[]awsv1.AMISelectorTerm{{ID: "ami-0123456789abcdef0"}}
		}, told: resolve.AMIsReady, want: []string{resolve.AMINotFound, "ami-0123456789abcdef0"}},
		{name: "E-69, an architecture", class: func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.AMISelectorTerms = new("AL2023"), []awsv1.AMISelectorTerm{{Name: "old"}}
		}, prepare: func(r *region) { r.server.AddImage(ec2test.Image{Name: "old", Architecture: "i386"}) },
			told: resolve.AMIsReady, want: []string{resolve.AMINotFound, "i386", "x86_64 or arm64"}},
		{name: "E-70, AL2", class: alias("al2@latest"), told: resolve.AMIsReady,
			want: []string{resolve.AMIFamilyUnsupported, "AL2", "1.34"}},
		{name: "E-70, Windows", class: alias("windows2025@latest"), told: resolve.AMIsReady,
			want: []string{resolve.AMIFamilyUnsupported, "Windows2025", "1.35", "1.34"}},
	}
}

// roles are inputs about rights.
func roles() []badInput {
	deny := func(action string) func(*region) {
		return func(r *region) { r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: action}}}) }
	}
	list := []badInput{
		{name: "E-71, no such role", class: func(c *awsv1.EC2NodeClass) { c.Spec.Role = new("other") },
			told: resolve.InstanceProfileReady, want: []string{resolve.RoleNotFound, `"other"`}},
		{name: "E-71, not to be passed", prepare: deny("iam:PassRole"), told: resolve.InstanceProfileReady,
			want: []string{resolve.Unauthorized, "iam:PassRole", `"nodes"`}},
		{name: "E-72", class: func(c *awsv1.EC2NodeClass) { c.Spec.Role, c.Spec.InstanceProfile = nil, new("other") },
			told: validation, want: []string{resolve.InstanceProfileNotFound, `"other"`}},
	}
	for _, action := range []string{"CreateLaunchTemplate", "RunInstances", "CreateFleet"} {
		list = append(list, badInput{name: "E-73, " + action, prepare: deny("ec2:" + action), tried: true,
			told: validation,
			want: []string{action + "AuthCheckFailed", "ec2:" + action, "arn:aws:ec2:",
				"no identity-based policy allows"}})
	}
	return list
}

// machinesThatCannotBe are inputs with which no machine could start.
func machinesThatCannotBe() []badInput {
	reserve := func(r ec2test.CapacityReservation) badInput {
		r.ID = "cr-0123456789abcdef0"
		return badInput{
			class: func(c *awsv1.EC2NodeClass) {
				c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: r.ID}}
			},
			prepare: func(w *region) {
				if r.Type != "" {
					w.server.AddCapacityReservation(r)
				}
			},
			told: resolve.CapacityReservationsReady, want: []string{resolve.CapacityReservationNotFound, r.ID, r.Type,
				r.Zone},
		}
	}
	unknown, ended, elsewhere := reserve(ec2test.CapacityReservation{}),
		reserve(ec2test.CapacityReservation{Type: "m5.large", Zone: "us-east-1a", State: "expired", Total: 1}),
		reserve(ec2test.CapacityReservation{Type: "m5.large", Zone: "us-east-1f", Total: 1})
	unknown.name, ended.name, elsewhere.name = "E-77, unknown", "E-77, ended", "E-77, another zone"
	untaken := reserve(ec2test.CapacityReservation{Type: "m5.large", Zone: "us-east-1a", Total: 1})
	untaken.name, untaken.tried = "E-77, no pool takes it", true
	untaken.pool = aPool("general", "default", "karpenter.k8s.aws/instance-family", "c5", "c6i")
	untaken.want = append(untaken.want, "general")
	data := func(family, alias, text string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			c.Spec.UserData, c.Spec.AMIFamily, c.Spec.AMISelectorTerms = new(text), new(family),
				[]awsv1.AMISelectorTerm{{Alias: alias}}
		}
	}
	const latest = "al2023@latest"
	return []badInput{
		{name: "E-74", class: func(c *awsv1.EC2NodeClass) {
			c.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"),
				EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("10Gi"))}}}
		}, told: validation, want: []string{"VolumeTooSmall", "10 GiB", "20 GiB", "ami-"}},
		{name: "E-75, AL2023", class: data("AL2023", latest, "Content-Type: multipart/mixed; boundary=\"x\"\n\n--x\n"+
			"Content-Type: application/node.eks.aws\n\nspec:\n  cluster: [my-secret\n--x--\n"), told: validation,
			want: []string{"UserDataInvalid", "part 1, line"}},
		{name: "E-75, Bottlerocket", class: data("Bottlerocket", "bottlerocket@latest",
			"[settings.kubernetes]\nmax-pods = my-secret\n"),
			told: validation, want: []string{"UserDataInvalid", "line 2"}},
		{name: "E-75, too large",
			class: data("AL2023", latest, "#!/bin/bash\n"+strings.Repeat("echo 0123456\n", 1300)), told: validation,
			want: []string{"UserDataSizeLimitExceeded", "16384"}},
		unknown, ended, elsewhere, untaken,
		{name: "E-01, enclaves", class: withEnclaves, pool: aPool("small", "default", instanceType, "t3.micro",
			"t3.small"), tried: true,
			told: "event", want: []string{EventNoEnclaves, "spec.enclaveOptions.enabled", "EC2NodeClass default",
				"t3.micro, t3.small"}},
	}
}

// services are inputs about services beside EC2, and unreadable answers.
func services() []badInput {
	garbled := func(how, as string) badInput {
		return badInput{name: "E-78, " + how, as: as, told: resolve.SubnetsReady, prepare: func(r *region) {
			r.faults(ec2test.Faults{Garbled: []ec2test.Garble{{Action: "ec2:DescribeSubnets", Share: 1, How: how}}})
		}, want: []string{resolve.NotResolved, "ec2:DescribeSubnets"}}
	}
	return []badInput{
		{name: "E-76, unknown", settings: func(s *settings) { s.queue = "warnings" }, told: "log",
			want: []string{"InterruptionQueueUnavailable", `"warnings"`, "us-east-1", "sqs:GetQueueUrl"}},
		{name: "E-76, not ours to read", settings: func(s *settings) { s.queue = "warnings" },
			prepare: func(r *region) {
				r.server.AddQueue("warnings")
				r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "sqs:ReceiveMessage"}}})
			}, told: "log", want: []string{"InterruptionQueueUnavailable", `"warnings"`, "us-east-1",
				"sqs:ReceiveMessage"}},
		garbled("cut", ""), garbled("html", ""),
		garbled("empty", "E-78, cut"), garbled("types", "E-78, cut"),
		{name: "E-79", settings: func(s *settings) { s.clusterName = "other" },
			prepare: func(r *region) { r.server.AddNetwork("other") }, // it has what it needs, but not of EKS
			told:    validation,
			want:    []string{"ClusterNotFound", `"other"`, "--cluster-endpoint", "--cluster-service-cidr"}},
		{name: "E-55, another name of the cluster", prepare: mistyped, told: "collector",
			want: []string{"NodeClaim unready", "eks:eks-cluster-name=c1", `--cluster-name is "other"`}},
	}
}

func (r *region) faults(f ec2test.Faults) {
	r.t.Helper()
	if err := r.server.SetFaults(f); err != nil {
		r.t.Fatal(err)
	}
}

// mistyped gives the cluster machines, and another name: one has a node that is Ready, one a node that is not.
func mistyped(r *region) {
	r.t.Helper()
	newDay(r).run(70 * time.Second) // until EC2 is sure to know the profile
	for _, name := range []string{"ready", "unready"} {
		r.join(name)
		launched := &karpenterv1.NodeClaim{}
		r.read(name, launched)
		launched.Status.Conditions = append(launched.Status.Conditions,
			karpenterv1.Condition{Type: karpenterv1.ConditionTypeLaunched, Status: metav1.ConditionTrue})
		if err := r.kube.Status().Update(r.t.Context(), launched); err != nil {
			r.t.Fatal(err)
		}
	}
	node := &corev1.Node{}
	r.read("node-unready", node)
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	if err := r.kube.Status().Update(r.t.Context(), node); err != nil {
		r.t.Fatal(err)
	}
	r.server.AddNetwork("other")
	r.pass(10 * time.Minute)
	r.settings.clusterName = "other"
	r.link = r.again()
}

func (r *region) read(name string, into client.Object) {
	r.t.Helper()
	if err := r.kube.Get(r.t.Context(), client.ObjectKey{Name: name}, into); err != nil {
		r.t.Fatal(err)
	}
}

// collect compares NodeClaims and machines, and returns the error. No claim is deleted, and no machine ended.
func (r *region) collect() string {
	r.t.Helper()
	indexed := interceptor.NewClient(r.kube.(client.WithWatch), interceptor.Funcs{ // the fake one has no index
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			nodes, is := list.(*corev1.NodeList)
			if !is {
				return c.List(ctx, list, options...)
			}
			of := (&client.ListOptions{}).ApplyOptions(options).FieldSelector
			err := c.List(ctx, list)
			nodes.Items = slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool {
				return !of.Matches(fields.Set{claim.IndexNodeProviderID: n.Spec.ProviderID})
			})
			return err
		},
	})
	_, err := claim.NewCollector(claim.Config{Client: indexed, Live: r.kube, Fleet: fleet.New(lazy{link: r.link}),
		Events: r, Metrics: metrics.New(prometheus.NewRegistry()), Now: r.Now, Log: logr.Discard(),
	}).Reconcile(r.t.Context(), request())
	var left karpenterv1.NodeClaimList
	if err := r.kube.List(r.t.Context(), &left); err != nil {
		r.t.Fatal(err)
	}
	for _, c := range left.Items {
		if c.DeletionTimestamp != nil {
			r.t.Errorf("NodeClaim %s is deleted", c.Name)
		}
	}
	for _, i := range r.server.Instances() {
		if i.State != ec2test.Running {
			r.t.Errorf("instance %s is %s", i.ID, i.State)
		}
	}
	if len(left.Items) != 2 || len(r.server.Instances()) != 2 || err == nil {
		r.t.Fatalf("%d claims, %d instances, error %v; want two each, and an error", len(left.Items),
			len(r.server.Instances()), err)
	}
	return err.Error()
}
