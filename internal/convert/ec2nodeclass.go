package convert

import (
	"encoding/json"
	"slices"
	"strings"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Image families.
const (
	familyCustom = "Custom"
	familyUbuntu = "Ubuntu"
	familyAL2    = "AL2"
	// noImage is an image that does not exist. Like Karpenter, v1 has it for Ubuntu without terms, so that nothing is
	// launched.
	noImage = "ami-placeholder"
)

// aliasFamilies returns the families that v1 can name in an alias.
func aliasFamilies() []string {
	return []string{familyAL2, "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025"}
}

// Words of the annotation for Ubuntu.
const (
	ubuntuFamily = "amiFamily"
	ubuntuDisks  = "blockDeviceMappings"
	ubuntuImage  = "incompatible"
)

// ubuntuMappings returns the disks that Karpenter gave to Ubuntu without blockDeviceMappings.
func ubuntuMappings() []any {
	return []any{
		object{"deviceName": "/dev/sda1", "rootVolume": true, "ebs": object{"encrypted": true, "volumeType": "gp3",
			"volumeSize": "20Gi"}},
	}
}

// ec2NodeClassUp turns a family without terms into an alias, and Ubuntu, which v1 does not have, into AL2 with an
// annotation.
func ec2NodeClassUp(o, annotations object) *Problem {
	spec := at(o, "spec")
	if spec == nil {
		return nil
	}
	defaultMetadataOptions(spec, "2")
	terms, _ := spec["amiSelectorTerms"].([]any)
	setDefault(spec, "amiFamily", familyCustom)
	family, isString := spec["amiFamily"].(string)
	switch {
	case !isString || family == familyCustom:
	case family == familyUbuntu:
		annotations[awsv1.UbuntuCompatibilityAnnotationKey] = ubuntuUp(spec, terms)
	case !slices.Contains(aliasFamilies(), family):
		return &Problem{"spec.amiFamily", encode(family), "it must be one of " + strings.Join(aliasFamilies(), ", ") +
			", Ubuntu or Custom"}
	case len(terms) == 0:
		spec["amiSelectorTerms"] = []any{object{"alias": strings.ToLower(family) + "@latest"}}
		delete(spec, "amiFamily")
	}
	return nil
}

func ubuntuUp(spec object, terms []any) string {
	words := []string{ubuntuFamily}
	spec["amiFamily"] = familyAL2
	if spec["blockDeviceMappings"] == nil {
		words = append(words, ubuntuDisks)
		spec["blockDeviceMappings"] = ubuntuMappings()
	}
	if len(terms) == 0 {
		words = append(words, ubuntuImage)
		spec["amiSelectorTerms"] = []any{object{"id": noImage}}
	}
	return strings.Join(words, ",")
}

// ec2NodeClassDown is the reverse of ec2NodeClassUp. kept are the original annotations of conversion.
func ec2NodeClassDown(o, kept object) {
	spec := at(o, "spec")
	if spec == nil {
		return
	}
	defaultMetadataOptions(spec, "1")
	terms, _ := spec["amiSelectorTerms"].([]any)
	if words := text(kept, awsv1.UbuntuCompatibilityAnnotationKey); words != "" && spec["amiFamily"] == familyAL2 {
		ubuntuDown(spec, strings.Split(words, ","))
		return
	}
	var left []any // what v1beta1 can express
	for _, item := range terms {
		term, isObject := item.(object)
		if !isObject {
			left = append(left, item)
			continue
		}
		if alias := text(term, "alias"); alias != "" {
			setDefault(spec, "amiFamily", familyOf(alias))
		}
		delete(term, "alias")
		delete(term, "ssmParameter")
		if len(term) > 0 {
			left = append(left, term)
		}
	}
	setDefault(spec, "amiFamily", familyCustom)
	if len(left) > 0 {
		spec["amiSelectorTerms"] = left
	} else if terms != nil {
		delete(spec, "amiSelectorTerms")
	}
}

func ubuntuDown(spec object, words []string) {
	spec["amiFamily"] = familyUbuntu
	if slices.Contains(words, ubuntuDisks) && equal(spec["blockDeviceMappings"], ubuntuMappings()) {
		delete(spec, "blockDeviceMappings")
	}
	if slices.Contains(words, ubuntuImage) && equal(spec["amiSelectorTerms"], []any{object{"id": noImage}}) {
		delete(spec, "amiSelectorTerms")
	}
}

// familyOf returns the family of an alias such as al2023@latest.
func familyOf(alias string) string {
	name, _, _ := strings.Cut(alias, "@")
	for _, family := range aliasFamilies() {
		if strings.EqualFold(family, name) {
			return family
		}
	}
	return familyCustom
}

// defaultMetadataOptions writes out the defaults of missing options. The versions differ in the number of hops.
func defaultMetadataOptions(spec object, hops json.Number) {
	if options, isObject := child(spec, "metadataOptions"); isObject {
		setDefault(options, "httpEndpoint", "enabled")
		setDefault(options, "httpProtocolIPv6", "disabled")
		setDefault(options, "httpPutResponseHopLimit", hops)
		setDefault(options, "httpTokens", "required")
	}
}
