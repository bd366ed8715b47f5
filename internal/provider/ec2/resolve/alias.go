package resolve

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/spec"
)

// Families of images.
const (
	FamilyAL2          = "AL2"
	FamilyAL2023       = "AL2023"
	FamilyBottlerocket = spec.FamilyBottlerocket
	FamilyCustom       = "Custom"
)

const latest = "latest"

// Family returns the image family of a class, which decides the form of user data, see spec.Family.
func Family(of *awsv1.EC2NodeClassSpec) string { return spec.Family(of) }

func aliasOf(term awsv1.AMISelectorTerm) (family, version string) { return spec.Alias(term) }

// unsupported returns why the family of a class, or of its alias, is not supported, and what to use instead (E-33,
// E-70); "" when it is supported.
func unsupported(spec *awsv1.EC2NodeClassSpec, kubernetes string) string {
	families := []string{Family(spec)}
	for _, term := range spec.AMISelectorTerms {
		if family, _ := aliasOf(term); family != "" {
			families = append(families, family)
		}
	}
	for _, family := range families {
		switch {
		case family == FamilyAL2 && since(kubernetes, 33):
			return fmt.Sprintf("AWS publishes no images of the family AL2 for Kubernetes %s, only up to 1.32; %s",
				kubernetes, instead)
		case family == FamilyAL2:
			return "the family AL2 is not supported, with Kubernetes " + version(kubernetes) + " or any other; " +
				instead
		case family == "Windows2025" && kubernetes != "" && !since(kubernetes, 35):
			return fmt.Sprintf(
				"AWS publishes images of the family Windows2025 from Kubernetes 1.35 on, and the cluster "+
					"has %s; nor are Windows nodes supported; %s", kubernetes, instead)
		case strings.HasPrefix(family, "Windows"):
			return fmt.Sprintf(
				"the family %s is not supported, with Kubernetes %s or any other: Windows nodes are not "+
					"served; %s", family, version(kubernetes), instead)
		}
	}
	return ""
}

const instead = "use AL2023 or Bottlerocket, or Custom with user data of your own"

func version(kubernetes string) string {
	if kubernetes == "" {
		return "of this cluster"
	}
	return kubernetes
}

// minor returns "1.33" for "v1.33.4-eks-ab12", and "" for an invalid version.
func minor(text string) string {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) < 2 {
		return ""
	}
	end := strings.IndexFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		parts[1] = parts[1][:end]
	}
	if parts[0] == "" || parts[1] == "" || strings.Trim(parts[0], "0123456789") != "" {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// since reports whether a version is 1.least or later.
func since(kubernetes string, least int) bool {
	var major, minor int
	if _, err := fmt.Sscanf(kubernetes, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || major == 1 && minor >= least
}

// candidate is a possible image of an alias.
type candidate struct {
	parameter    string
	architecture string // Kubernetes' name
	requirements []corev1.NodeSelectorRequirement
}

// variant says which devices an image is made for.
type variant string

const (
	standard variant = "standard" // neither GPUs nor Neuron devices
	nvidia   variant = "nvidia"
	neuron   variant = "neuron"
	// plainOrNeuron is for Bottlerocket's standard image, which has the driver of Neuron devices.
	plainOrNeuron variant = "standard with neuron"
)

// candidates returns the possible images of an alias for a version of Kubernetes (E-07), in a fixed order.
func candidates(family, version, kubernetes string) (list []candidate) {
	add := func(parameter, architecture string, v variant) {
		list = append(list, candidate{parameter, architecture, requirements(architecture, v)})
	}
	switch family {
	case FamilyAL2023:
		for _, each := range []struct {
			machine, architecture string
			variants              []variant
		}{
			{"x86_64", amd64, []variant{standard, nvidia, neuron}}, {"arm64", arm64, []variant{standard, nvidia}},
		} {
			for _, v := range each.variants {
				release := "recommended"
				if version != latest {
					release = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", each.machine, v, kubernetes, version)
				}
				add(fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id",
					kubernetes, each.machine, v, release), each.architecture, v)
			}
		}
	case FamilyBottlerocket:
		release := strings.TrimPrefix(version, "v")
		for _, architecture := range []string{amd64, arm64} {
			machine := architecture
			if architecture == amd64 {
				machine = "x86_64"
			}
			path := func(suffix string) string {
				return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, suffix,
					machine, release)
			}
			add(path(""), architecture, plainOrNeuron)
			add(path("-nvidia"), architecture, nvidia)
		}
	}
	return list
}
