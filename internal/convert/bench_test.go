package convert

import "testing"

// BenchmarkConvert measures the cost of a conversion for an API server's request, without HTTP.
func BenchmarkConvert(b *testing.B) {
	c := converter(b)
	pool := decodeText(b,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default","uid":"7"},"spec":{
"template":{"metadata":{"labels":{"team":"a"}},"spec":{"requirements":[{"key":"karpenter.k8s.aws/instance-category","operator":"In","values":["c","m","r"]},
{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}],"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"},
"expireAfter":"720h","terminationGracePeriod":"1h"}},"disruption":{"consolidationPolicy":"WhenEmptyOrUnderutilized","consolidateAfter":"1m",
"budgets":[{"nodes":"10%","reasons":["Empty"]}]},"limits":{"cpu":"1000"}}}`)
	for b.Loop() {
		if _, err := c.Convert(pool, V1beta1); err != nil {
			b.Fatal(err)
		}
	}
}
