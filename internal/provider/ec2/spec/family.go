package spec

import (
	"strings"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// FamilyBottlerocket is a family whose alias has another spelling.
const FamilyBottlerocket = "Bottlerocket"

// Family returns the image family of a class, which decides the form of user data: spec.amiFamily, otherwise the
// family of the alias. It is "" for a class that has neither.
func Family(spec *awsv1.EC2NodeClassSpec) string {
	if spec.AMIFamily != nil && *spec.AMIFamily != "" {
		return *spec.AMIFamily
	}
	for _, term := range spec.AMISelectorTerms {
		if family, _ := Alias(term); family != "" {
			return family
		}
	}
	return ""
}

// Alias splits an alias into its family, in the spelling of amiFamily, and the version.
func Alias(term awsv1.AMISelectorTerm) (family, version string) {
	name, version, found := strings.Cut(term.Alias, "@")
	if !found {
		return "", ""
	}
	switch name = strings.ToLower(name); name {
	case "al2", "al2023":
		return strings.ToUpper(name), version
	case "bottlerocket":
		return FamilyBottlerocket, version
	}
	return strings.Replace(name, "windows", "Windows", 1), version
}
