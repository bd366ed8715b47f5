// Package offering tracks what EC2 sells in a region and at what price, and builds the catalogues of node classes from
// it.
//
//   - [Types] keeps the instance types and their zones (E-17), [Prices] their prices (E-24 to E-26). They ask AWS when
//     it is time, and keep what they know when it does not answer.
//   - [Reservations] counts down capacity reservations (E-13), [Shortages] remembers pools without capacity (E-42).
//   - [Builder] builds the catalogue: what a class may launch, with unavailable offerings marked as such.
//
// It does not decide what is launched, and runs nothing by itself.
//
// Sources: the EC2 and Price List API references; the names of labels from Karpenter's documentation.
package offering
