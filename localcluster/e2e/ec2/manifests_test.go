package ec2

import (
	"fmt"
	"strings"
)

// class returns an EC2NodeClass as users write it, with further lines below spec.
func class(name, spec string) string {
	return fmt.Sprintf(`apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %s}
spec:
  role: KarpenterNodeRole
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: e2e}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: e2e}}]
%s`, name, indent(spec, 2))
}

// pool returns a NodePool of a class, with entries of its requirements, and further lines below spec.
func pool(name, of, requirements, spec string) string {
	return fmt.Sprintf(`apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %s}
      requirements:
%s
%s
`, name, of, indent(requirements, 6), indent(spec, 2))
}

// plain requires types for pods without wishes.
const plain = `- {key: kubernetes.io/os, operator: In, values: [linux]}
- {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
- {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}`

const amd64 = `
- {key: kubernetes.io/arch, operator: In, values: [amd64]}`

const onDemand = `
- {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}`

const spotToo = `
- {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}`

// quick lets empty nodes go at once.
const quick = `disruption:
  consolidationPolicy: WhenEmpty
  consolidateAfter: 0s
  budgets: [{nodes: "100%"}]`

func indent(text string, by int) string {
	if text == "" {
		return ""
	}
	return strings.Repeat(" ", by) + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", by))
}

// deployment returns a Deployment with further lines in its pods' spec.
func deployment(name string, replicas int, requests, podSpec string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: example.invalid/main, resources: {requests: %[3]s}}
%[4]s
`, name, replicas, requests, indent(podSpec, 6))
}
