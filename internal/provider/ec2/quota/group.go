// Package quota knows which other types are unavailable when an account's quota is used up (E-43). EC2 counts the
// vCPUs of a whole group of instance families, so trying the types of the group one by one is useless.
//
// Source: the quotas of EC2 as its user guide lists them (on-demand instances, Spot Instance requests).
package quota

import "strings"

// Group is a group of instance types that share a quota, by AWS's name.
type Group string

// The groups.
const (
	Standard   Group = "Standard (A, C, D, H, I, M, R, T, Z)"
	Graphics   Group = "G and VT"
	P          Group = "P"
	F          Group = "F"
	X          Group = "X"
	Inf        Group = "Inf"
	Trn        Group = "Trn"
	DL         Group = "DL"
	HPC        Group = "HPC"
	HighMemory Group = "High Memory"
	Mac        Group = "Mac" // which run on dedicated hosts only, with a quota for each family
)

// letters returns the group for the leading letters of an instance family.
func letters(of string) (Group, bool) {
	switch of {
	case "a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z", "cc", "cr", "hs":
		return Standard, true
	case "g", "gr", "vt":
		return Graphics, true
	case "p":
		return P, true
	case "f":
		return F, true
	case "x":
		return X, true
	case "inf":
		return Inf, true
	case "trn":
		return Trn, true
	case "dl":
		return DL, true
	case "hpc":
		return HPC, true
	case "u":
		return HighMemory, true
	case "mac":
		return Mac, true
	}
	return "", false
}

// GroupOf returns the group of an instance type, by its name. A family newer than this list is a group of its own, so
// that a refusal for it does not affect others.
func GroupOf(kind string) Group {
	family, _, _ := strings.Cut(kind, ".")
	digits := strings.IndexFunc(family, func(r rune) bool { return r < 'a' || r > 'z' })
	if digits < 0 {
		digits = len(family)
	}
	if group, known := letters(family[:digits]); known {
		return group
	}
	return Group(strings.ToUpper(family[:digits]))
}

// Name returns AWS's name for the quota of a group, for spot or on-demand.
func (g Group) Name(spot bool) string {
	if spot {
		return "All " + string(g) + " Spot Instance Requests"
	}
	if g == Mac {
		return "Running Dedicated Mac Hosts"
	}
	return "Running On-Demand " + string(g) + " instances"
}
