// Package offering knows what EC2 sells in a region and for how much, and makes the catalogue of a node class from it.
//
//   - [Types] keeps the instance types and their zones (E-17), [Prices] what they cost (E-24 to E-26). They ask when
//     it is time, and keep what they know when AWS does not answer.
//   - [Reservations] counts down capacity reservations (E-13), [Shortages] remembers what could not be had (E-42).
//   - [Builder] makes the catalogue: what a class may launch, with all that cannot be had now marked as such.
//
// It does not decide what is launched, and runs nothing by itself.
//
// Sources: the EC2 and Price List API references; the names of labels from Karpenter's documentation.
package offering
