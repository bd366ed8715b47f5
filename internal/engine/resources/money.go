package resources

import (
	"fmt"
	"math"
)

// Money is an amount of US dollars in micro-dollars; as a price it is per hour. The range is ±9.2 × 10^12 dollars.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000

// MaxPrice is the highest price per hour that makes sense: a million dollars. Offerings with an unknown price have it:
// they come last, and sums of prices stay in range.
const MaxPrice = 1_000_000 * Dollar

// MostKnown is the highest price that is known: an offering has it if somebody wants it last of all.
const MostKnown = MaxPrice - 1

// Unpriced is the price of what has no known price. It orders after every real price.
const Unpriced Money = math.MaxInt64

// FromDollars rounds a price in dollars to micro-dollars. NaN, negative and absurd prices (over a million dollars
// an hour) are an error, so that they can never poison a sum.
func FromDollars(dollars float64) (Money, error) {
	if math.IsNaN(dollars) || dollars < 0 || dollars > MaxPrice.Dollars() {
		return 0, fmt.Errorf("price %v: want dollars per hour from 0 to 1000000", dollars)
	}
	return Money(math.Round(dollars * float64(Dollar))), nil
}

// OfNode returns the price of a node whose offering has price m: [Unpriced] for [MaxPrice], since nobody knows what
// its removal would save.
func (m Money) OfNode() Money {
	if m >= MaxPrice {
		return Unpriced
	}
	return m
}

// Dollars returns m in dollars, for output only.
func (m Money) Dollars() float64 { return float64(m) / float64(Dollar) }

// String prints dollars with as many decimals as are needed, at least three: 0.096, 1.250, 0.0042.
func (m Money) String() string {
	if m == Unpriced {
		return "unpriced"
	}
	sign, whole, part := "", m/Dollar, m%Dollar
	if m < 0 {
		sign, whole, part = "-", -whole, -part
	}
	digits := fmt.Sprintf("%06d", part)
	for len(digits) > 3 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return fmt.Sprintf("%s%d.%s", sign, whole, digits)
}
