package resolve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

func terms(list ...awsv1.AMISelectorTerm) func(*awsv1.EC2NodeClassSpec) {
	return func(s *awsv1.EC2NodeClassSpec) { s.AMISelectorTerms, s.AMIFamily = list, new("AL2023") }
}

// E-07, E-09: an alias resolves to its variants; a variant without a parameter is left out, and its types have no
// image.
func TestAnAliasStandsForItsVariants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.resolve()
	for _, c := range []struct {
		architecture, accelerator, want string
	}{
		{"amd64", "", "al2023-x86_64-standard-v1"}, {"amd64", resolve.Nvidia, "al2023-x86_64-nvidia-v1"},
		{"arm64", "", "al2023-arm64-standard-v1"}, {"arm64", resolve.Nvidia, ""},
		{"amd64", resolve.Neuron, ""},
	} {
		ami, found := resolve.ImageFor(class.Status.AMIs, c.architecture, c.accelerator)
		if ami.Name != c.want || found != (c.want != "") {
			t.Errorf("%s, %q: %q (%t), want %q", c.architecture, c.accelerator, ami.Name, found, c.want)
		}
	}
	w.release("x86_64/neuron", "v1")
	w.Advance(5 * time.Minute)
	w.resolve()
	if ami, _ := resolve.ImageFor(class.Status.AMIs, "amd64", resolve.Neuron); ami.Name != "al2023-x86_64-neuron-v1" {
		t.Errorf("a variant that comes later is not found: %s", amis(class))
	}
}

// E-07: a pinned version has paths of its own; Bottlerocket's versions have no v.
func TestPinnedVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pinned := w.AddImage(ec2test.Image{Name: "pinned"})
	w.SetParameter(al2023+"x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.33-v20260801/image_id", pinned.ID)
	rocket := w.AddImage(ec2test.Image{Name: "rocket", Architecture: "arm64"})
	w.SetParameter("/aws/service/bottlerocket/aws-k8s-1.33/arm64/1.50.0/image_id", rocket.ID)
	gpu := w.AddImage(ec2test.Image{Name: "rocket-gpu"})
	w.SetParameter("/aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/latest/image_id", gpu.ID)
	for alias, want := range map[string]string{
		"al2023@v20260801": "pinned", "bottlerocket@v1.50.0": "rocket", "bottlerocket@1.50.0": "rocket",
		"bottlerocket@latest": "rocket-gpu",
	} {
		class := w.class(strings.ReplaceAll(alias, "@", "-"), func(s *awsv1.EC2NodeClassSpec) {
			s.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: alias}}
		})
		w.resolve()
		if got := amis(class); got != want {
			t.Errorf("%s: %s, want %s", alias, got, want)
		}
	}
	// Bottlerocket's standard image has the driver of Neuron devices, AL2023's has not
	for _, class := range w.classes {
		_, found := resolve.ImageFor(class.Status.AMIs, class.Status.AMIs[0].Requirements[0].Values[0], resolve.Neuron)
		if want := class.Status.AMIs[0].Name == "rocket"; found != want {
			t.Errorf("%s has an image for Neuron devices: %t", class.Name, found)
		}
	}
}

// E-69: for an alias without images the error names the parameters that were tried; for an image, why it cannot be
// used.
func TestWhyThereIsNoImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mac := w.AddImage(ec2test.Image{Name: "mac", Architecture: "x86_64_mac"})
	failed := w.AddImage(ec2test.Image{Name: "failed", State: "failed"})
	w.SetParameter("/mine", "i-0123")
	w.SetParameter("/gone", "ami-gone")
	for _, c := range []struct {
		term awsv1.AMISelectorTerm
		want []string
	}{
		{awsv1.AMISelectorTerm{Alias: "al2023@v1"}, []string{"alias al2023@v1", "Kubernetes 1.33",
			al2023 + "x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.33-v1/image_id"}},
		{awsv1.AMISelectorTerm{ID: mac.ID}, []string{mac.ID, "x86_64_mac"}},
		{awsv1.AMISelectorTerm{ID: failed.ID}, []string{failed.ID, "is failed"}},
		{awsv1.AMISelectorTerm{ID: "ami-none"}, []string{"ami-none does not exist"}},
		{awsv1.AMISelectorTerm{Name: "x*"}, []string{"name x*, owner amazon or self"}},
		{awsv1.AMISelectorTerm{SSMParameter: "/none"}, []string{"/none does not exist"}},
		{awsv1.AMISelectorTerm{SSMParameter: "/mine"}, []string{"/mine does not hold the id of an image"}},
		{awsv1.AMISelectorTerm{SSMParameter: "/gone"}, []string{"/gone: image ami-gone does not exist"}},
	} {
		class := w.class("a", terms(c.term))
		w.resolve()
		w.expect(class, resolve.AMIsReady, "False", resolve.AMINotFound, append(c.want, "spec.amiSelectorTerms[0]")...)
		w.classes = nil
	}
	two := w.class("two", terms(awsv1.AMISelectorTerm{ID: "ami-none"}, awsv1.AMISelectorTerm{Name: "al2023-arm64*"}))
	w.resolve()
	w.expect(two, resolve.AMIsReady, "True", resolve.AMIsReady,
		"spec.amiSelectorTerms[0]: image ami-none does not exist")
}

// E-33, E-70: families that are not served, with what to use instead.
func TestFamiliesThatAreNotServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		version, alias, family string
		want                   []string
	}{
		{"1.33", "al2@latest", "", []string{"AL2 for Kubernetes 1.33", "only up to 1.32",
			"use AL2023 or Bottlerocket"}},
		{"1.32", "al2@latest", "", []string{"AL2 is not supported, with Kubernetes 1.32"}},
		{"1.34", "windows2025@latest", "", []string{"Windows2025 from Kubernetes 1.35 on", "has 1.34", "Custom"}},
		{"1.35", "windows2025@latest", "", []string{"Windows2025 is not supported, with Kubernetes 1.35"}},
		{"1.35", "", "Windows2022", []string{"Windows2022 is not supported"}},
		{"1.33", "al2@latest", "Custom", []string{"AL2"}},
		{"", "", "AL2", []string{"AL2 is not supported"}},
	} {
		class := w.class("a", func(s *awsv1.EC2NodeClassSpec) {
			s.AMISelectorTerms = []awsv1.AMISelectorTerm{
				{Alias: c.alias, ID: map[bool]string{true: "ami-1"}[c.alias == ""]},
			}
			if c.family != "" {
				s.AMIFamily = &c.family
			}
		})
		w.version = c.version
		w.resolve()
		w.expect(class, resolve.AMIsReady, "False", resolve.AMIFamilyUnsupported, c.want...)
		w.classes = nil
	}
	if n := w.Counts()["ssm:GetParameter"] + w.Counts()["ec2:DescribeImages"]; n > 0 {
		t.Errorf("%d calls for images of families that are not served", n)
	}
	w.version = ""
	unsure := w.class("unsure", nil)
	w.resolve()
	w.expect(unsure, resolve.AMIsReady, "Unknown", resolve.NotResolved, "version of Kubernetes")
}

// E-09: images by name, owner and tags; of equal ones not deprecated before deprecated, then the newest, then by name.
func TestImagesAreChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	day := func(n int) time.Time { return w.Now().Add(time.Duration(n) * 24 * time.Hour) }
	mine := map[string]string{"team": "a"}
	w.AddImage(ec2test.Image{ID: "ami-1", Name: "web-1", Owner: ec2test.Account, Created: day(-9), Tags: mine})
	w.AddImage(ec2test.Image{ID: "ami-2", Name: "web-2", Owner: ec2test.Account, Created: day(-5)})
	w.AddImage(ec2test.Image{ID: "ami-3", Name: "web-3", Owner: ec2test.Account, Created: day(-3), Deprecated: day(-1),
		Tags: mine})
	w.AddImage(ec2test.Image{ID: "ami-4", Name: "web-0", Created: day(-5)})
	w.AddImage(ec2test.Image{ID: "ami-5", Name: "web-5", Owner: "999988887777", Created: day(-1),
		Tags: map[string]string{"shared": "1"}})
	w.AddImage(ec2test.Image{ID: "ami-6", Name: "web-6", Owner: ec2test.Account, Architecture: "arm64",
		Created: day(-30), Tags: mine})
	w.SetParameter("/team/a", "ami-3")
	for i, c := range []struct {
		terms []awsv1.AMISelectorTerm
		want  string
	}{
		{[]awsv1.AMISelectorTerm{{Name: "web-*"}}, "web-0 web-6"},
		{[]awsv1.AMISelectorTerm{{Name: "web-*", Owner: "self"}}, "web-2 web-6"},
		{[]awsv1.AMISelectorTerm{{Name: "web-*", Owner: "999988887777"}}, "web-5"},
		{[]awsv1.AMISelectorTerm{{Tags: mine}}, "web-1 web-6"},
		{[]awsv1.AMISelectorTerm{{Tags: map[string]string{"team": "*"}, Name: "web-3"}}, "web-3"},
		{[]awsv1.AMISelectorTerm{{Tags: map[string]string{"shared": "*"}}}, "web-5"},
		{[]awsv1.AMISelectorTerm{{ID: "ami-1"}, {ID: "ami-2"}, {ID: "ami-6"}}, "web-2 web-6"},
		{[]awsv1.AMISelectorTerm{{SSMParameter: "/team/a"}}, "web-3"},
		{[]awsv1.AMISelectorTerm{{SSMParameter: "/team/a", Tags: mine}}, "web-3"},
	} {
		class := w.class(fmt.Sprint("c", i), terms(c.terms...))
		w.resolve()
		if got := amis(class); got != c.want {
			t.Errorf("%+v: %s, want %s", c.terms, got, c.want)
		}
	}
	if !w.classes[7].Status.AMIs[0].Deprecated || w.classes[0].Status.AMIs[0].Deprecated {
		t.Error("which image is deprecated stands in the status")
	}
}
