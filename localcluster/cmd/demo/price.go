package main

import (
	"context"
	"fmt"
	"strconv"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// priceLabel is the label in which KWOK nodes have their price in dollars per hour; eks-node-viewer reads it.
const priceLabel = "eks-node-viewer/instance-price"

// price returns the sum of the prices of a NodePool's nodes, in dollars per hour.
func (s *story) price(ctx context.Context, pool string) (float64, error) {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for name, node := range nodes {
		if node.Labels[karpenterv1.NodePoolLabelKey] != pool {
			continue
		}
		price, err := strconv.ParseFloat(node.Labels[priceLabel], 64)
		if err != nil {
			return 0, fmt.Errorf("node %s: label %s is %q, want a price", name, priceLabel, node.Labels[priceLabel])
		}
		sum += price
	}
	return sum, nil
}

func conditionTrue(conditions []karpenterv1.Condition, name string) bool {
	for _, c := range conditions {
		if string(c.Type) == name {
			return string(c.Status) == "True"
		}
	}
	return false
}
