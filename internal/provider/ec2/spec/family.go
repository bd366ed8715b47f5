package spec

import (
	"strings"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// FamilyBottlerocket is the family of an alias that is not spelled as the family is.
const FamilyBottlerocket = "Bottlerocket"

// Family returns how the images of a class read user data: what spec.amiFamily says, else the family of the alias.
// It is "" for a class that has neither.
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

// Alias splits an alias into its family, as amiFamily has it, and the version.
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
