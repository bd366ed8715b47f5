package translate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// maxAmount bounds every single amount, in base units: 72 PB, or 72 trillion cores. Absurd quantities are cut to it,
// so that sums of a hundred of them do not overflow.
const maxAmount int64 = 1 << 56

// Amounts converts quantities to base units (milli-cores for cpu, else units), rounded up. Negative quantities count
// as 0, absurd ones as 2^56.
func Amounts(list corev1.ResourceList) resources.Amounts {
	amounts := make(resources.Amounts, len(list))
	for name, quantity := range list {
		amounts[string(name)] = amount(name, quantity)
	}
	return amounts
}

func amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	most := maxAmount
	if name == corev1.ResourceCPU {
		most /= 1000
	}
	switch {
	case quantity.Sign() <= 0:
		return 0
	case endless(quantity):
		return maxAmount
	case quantity.CmpInt64(most) >= 0:
		return maxAmount
	case name == corev1.ResourceCPU:
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// endless reports whether a quantity is so large that comparing it takes minutes, because all its digits are written
// out. Our CRDs refuse exponents of more than two digits, those of Karpenter's charts accept them.
func endless(quantity resource.Quantity) bool {
	const largest = 100 // decimal digits behind the first
	if _, small := quantity.AsInt64(); small {
		return false
	}
	c := quantity.DeepCopy()
	return c.AsDec().Scale() < -largest
}

// amountDown is amount rounded down, for limits: usage above a limit by any fraction is above it.
func amountDown(name corev1.ResourceName, quantity resource.Quantity) int64 {
	up := amount(name, quantity)
	if endless(quantity) {
		return up
	}
	if rounded := Quantity(string(name), up); up > 0 && rounded.Cmp(quantity) > 0 {
		return up - 1
	}
	return up
}

// Quantity converts an amount in base units back.
func Quantity(name string, amount int64) resource.Quantity {
	switch {
	case name == resources.NameCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case name == resources.NameMemory, name == resources.NameEphemeralStorage,
		strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

// ResourceList converts the components of v that are not 0 back. names are those of the space of v.
func ResourceList(names resources.Names, v resources.Vector) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, amount := range v {
		if amount != 0 && i < len(names) {
			list[corev1.ResourceName(names[i])] = Quantity(names[i], amount)
		}
	}
	return list
}

func vector(space *resources.Space, list corev1.ResourceList) resources.Vector {
	if len(list) == 0 {
		return nil
	}
	return space.Vector(Amounts(list))
}
