package merge

import (
	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// HyperShift's wrappers use enumerations in PascalCase where Karpenter has booleans and lower-case words. An empty
// value of a wrapper means that it is not set.

// optional returns a pointer to text, or nil if it is empty.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return new(text)
}

// flag translates an enumeration of two values into a boolean: true if value is yes, nil if it is empty.
func flag[T ~string](value, yes T) *bool {
	if value == "" {
		return nil
	}
	return new(value == yes)
}

// publicAddress returns nil to let the subnet decide: false would forbid a public address.
func publicAddress(value hypershiftv1.IPAddressAssociation) *bool {
	if value == hypershiftv1.IPAddressAssociationPublic {
		return new(true)
	}
	return nil
}

func detailedMonitoring(value hypershiftv1.Monitoring) *bool {
	return flag(value, hypershiftv1.MonitoringDetailed)
}

// metadataOptions translates the options. It fills in unset ones with the defaults of EC2NodeClass's schema, so that
// the wanted object can be compared with the stored one.
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

// word translates an enumeration of two values into one of two words. An unset value gives the second word.
func word[T ~string](value, first T, ifFirst, otherwise string) *string {
	if value == first {
		return new(ifFirst)
	}
	return new(otherwise)
}
