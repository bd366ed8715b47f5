package resolve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

const (
	kubernetes = "v1.33.4-eks-0a1b2c3"
	al2023     = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/"
)

// world is an account with a network, a role, the images of AL2023, and a resolver.
type world struct {
	*ec2test.Server
	t        testing.TB
	resolver *resolve.Resolver
	classes  []*awsv1.EC2NodeClass
	results  map[string]resolve.Result
	version  string // of Kubernetes
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Server: ec2test.Start(t, ec2test.Options{}), t: t, version: kubernetes}
	w.AddNetwork("c1", "us-east-1a", "us-east-1b")
	w.AddRole("nodes")
	for _, variant := range []string{"x86_64/standard", "x86_64/nvidia", "arm64/standard"} {
		w.release(variant, "v1")
	}
	w.restart()
	return w
}

// release makes an image and has a parameter of AL2023 name it.
func (w *world) release(variant, version string) ec2test.Image {
	machine, _, _ := strings.Cut(variant, "/")
	i := w.AddImage(ec2test.Image{Name: "al2023-" + strings.ReplaceAll(variant, "/", "-") + "-" + version,
		Architecture: machine})
	w.SetParameter(al2023+variant+"/recommended/image_id", i.ID)
	return i
}

// restart begins with a resolver without memory.
func (w *world) restart() {
	w.t.Helper()
	w.restartWith(iam.NewFromConfig(w.once()))
}

// once is the configuration of clients that try once.
func (w *world) once() aws.Config {
	config := w.Config()
	config.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	return config
}

func (w *world) restartWith(identities resolve.IAM) {
	w.t.Helper()
	r, err := resolve.New(resolve.Config{
		EC2: ec2.NewFromConfig(w.once()), SSM: ssm.NewFromConfig(w.once()), IAM: identities, Now: w.Now,
		Cluster: "c1", Region: "us-east-1",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.resolver = r
}

// class adds a class; change makes it another than the usual one.
func (w *world) class(name string, change func(*awsv1.EC2NodeClassSpec)) *awsv1.EC2NodeClass {
	tags := map[string]string{"karpenter.sh/discovery": "c1"}
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			Role:                       new("nodes"),
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: tags}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tags}},
		},
	}
	if change != nil {
		change(&class.Spec)
	}
	w.classes = append(w.classes, class)
	return class
}

// edit changes a class as a user does.
func edit(class *awsv1.EC2NodeClass, change func(*awsv1.EC2NodeClassSpec)) {
	change(&class.Spec)
	class.Generation++
}

// resolve resolves all classes and writes the results, like the controller.
func (w *world) resolve() {
	w.t.Helper()
	w.results = w.resolver.Resolve(w.t.Context(), w.classes, w.version)
	for _, class := range w.classes {
		result, found := w.results[class.Name]
		if !found {
			w.t.Fatalf("no result for %s", class.Name)
		}
		class.Status = *result.Status.DeepCopy()
		for _, c := range result.Conditions {
			if c.Reason == "" {
				w.t.Errorf("%s has no reason", c.Type)
			}
			c.ObservedGeneration = class.Generation
			class.Status.Conditions = append(class.Status.Conditions, c)
		}
	}
}

// ready resolves until new instance profiles can be used.
func (w *world) ready() {
	w.t.Helper()
	w.resolve()
	w.Advance(time.Minute)
	w.resolve()
	for _, class := range w.classes {
		w.expect(class, karpenterv1.ConditionTypeReady, "True", "Ready")
	}
}

// expect compares a condition, and looks for parts of its message.
func (w *world) expect(class *awsv1.EC2NodeClass, kind, status, reason string, parts ...string) {
	w.t.Helper()
	for _, c := range class.Status.Conditions {
		if c.Type != kind {
			continue
		}
		if string(c.Status) != status || c.Reason != reason {
			w.t.Errorf("%s: %s is %s, %s (%s), want %s, %s", class.Name, kind, c.Status, c.Reason, c.Message, status,
				reason)
		}
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				w.t.Errorf("%s: %s says %q, without %q", class.Name, kind, c.Message, part)
			}
		}
		return
	}
	w.t.Errorf("%s has no %s", class.Name, kind)
}

// kinds returns the types of a class's conditions, in order.
func kinds(class *awsv1.EC2NodeClass) string {
	var list []string
	for _, c := range class.Status.Conditions {
		list = append(list, c.Type)
	}
	return strings.Join(list, " ")
}

// resolved prints the content of a status except conditions.
func resolved(class *awsv1.EC2NodeClass) string {
	s := class.Status
	s.Conditions = nil
	return fmt.Sprintf("%+v", s)
}

// amis prints the names of a class's images in order, with their architectures.
func amis(class *awsv1.EC2NodeClass) string {
	var list []string
	for _, a := range class.Status.AMIs {
		list = append(list, a.Name)
	}
	return strings.Join(list, " ")
}

func (w *world) faults(f ec2test.Faults) {
	w.t.Helper()
	if err := w.SetFaults(f); err != nil {
		w.t.Fatal(err)
	}
}

// throttled returns an always empty bucket for some actions.
func throttled(actions ...string) ec2test.Faults {
	f := ec2test.Faults{Throttle: map[string]ec2test.Bucket{}}
	for _, action := range actions {
		f.Throttle[action] = ec2test.Bucket{}
	}
	return f
}
