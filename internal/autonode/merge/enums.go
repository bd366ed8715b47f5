package merge

import (
	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// HyperShift's wrappers write enumerations in PascalCase where Karpenter has booleans and lower-case words. An empty
// value of a wrapper is one that is not set.

// optional returns nil for the empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return new(text)
}

// flag translates an enumeration of two values into a boolean, true for yes.
func flag[T ~string](value, yes T) *bool {
	if value == "" {
		return nil
	}
	return new(value == yes)
}

// publicAddress leaves what the subnet decides to the subnet: false would forbid a public address.
func publicAddress(value hypershiftv1.IPAddressAssociation) *bool {
	if value == hypershiftv1.IPAddressAssociationPublic {
		return new(true)
	}
	return nil
}

func detailedMonitoring(value hypershiftv1.Monitoring) *bool {
	return flag(value, hypershiftv1.MonitoringDetailed)
}

// metadataOptions translates the options, and writes those that are not set as the schema of EC2NodeClass would fill
// them in, so that what is wanted can be compared with what is stored.
func metadataOptions(own *hypershiftv1.MetadataOptions) *awsv1.MetadataOptions {
	if own == nil {
		own = &hypershiftv1.MetadataOptions{}
	}
	options := &awsv1.MetadataOptions{
		HTTPEndpoint:            word(own.Access, hypershiftv1.MetadataAccessNone, "disabled", "enabled"),
		HTTPProtocolIPv6:        word(own.HTTPIPProtocol, hypershiftv1.MetadataIPProtocolIPv6, "enabled", "disabled"),
		HTTPTokens:              word(own.HTTPTokens, hypershiftv1.MetadataTokensOptional, "optional", "required"),
		HTTPPutResponseHopLimit: own.HTTPPutResponseHopLimit,
	}
	if options.HTTPPutResponseHopLimit == nil {
		options.HTTPPutResponseHopLimit = new(int64(1))
	}
	return options
}

// word translates an enumeration of two values into one of two words; the second is also that of a value that is not
// set.
func word[T ~string](value, first T, ifFirst, otherwise string) *string {
	if value == first {
		return new(ifFirst)
	}
	return new(otherwise)
}
