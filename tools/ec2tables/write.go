package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The two files have the form that package tables reads: comment lines with "#", then lines about the columns and a
// header, then a line for each instance type.

// old is how much older than the newest prices of a file others must be to be marked as old.
const old = 365 * 24 * time.Hour

// writePrices writes a line for each type with its price in each region, "-" where it has none.
func writePrices(w *bytes.Buffer, lists []priceList) error {
	slices.SortFunc(lists, func(a, b priceList) int { return cmp.Compare(rank(a.region), rank(b.region)) })
	newest := time.Time{}
	for i, list := range lists {
		if i > 0 && lists[i-1].region == list.region {
			return fmt.Errorf("region %s has prices in %s and in %s", list.region, lists[i-1].from, list.from)
		}
		date, err := time.Parse(time.DateOnly, list.date)
		if err != nil {
			return fmt.Errorf("%s: %w", list.from, err)
		}
		if date.After(newest) {
			newest = date
		}
	}
	fmt.Fprint(w, "# What EC2's instance types cost per hour, on demand, with Linux on shared hardware (E-26).\n",
		"# Written by tools/ec2tables (make tables), never by hand. Figures only; the sources' licence is Apache-2.0.\n",
		"# A column for each region, in its currency; - is no price.\n")
	kinds, header := map[string]bool{}, "type"
	for _, list := range lists {
		fmt.Fprintf(w, "region %s currency=%s date=%s%s %s\n", list.region,
			currency(list.region), list.date, age(list.date, newest), list.from.fields())
		header += " " + list.region
		for kind := range list.prices {
			kinds[kind] = true
		}
	}
	fmt.Fprintln(w, header)
	for _, kind := range sorted(kinds) {
		line := kind
		for _, list := range lists {
			line += " " + cmp.Or(list.prices[kind], "-")
		}
		fmt.Fprintln(w, line)
	}
	return nil
}

// rank sorts regions by name, after the one that others borrow from.
func rank(region string) string {
	if region == "us-east-1" {
		return ""
	}
	return region
}

func currency(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "CNY"
	}
	return "USD"
}

func age(day string, newest time.Time) string {
	if date, err := time.Parse(time.DateOnly, day); err == nil && newest.Sub(date) > old {
		return " old=true"
	}
	return ""
}

// fields returns the source as it is written above a table.
func (s source) fields() string {
	return fmt.Sprintf("module=%s version=%s file=%s licence=Apache-2.0 sum=%s", s.module, s.version, s.file, s.sum)
}

// writeBranches writes a line for each type: whether it supports trunking, and with how many branch interfaces.
func writeBranches(w *bytes.Buffer, list branchList) {
	fmt.Fprint(w, "# Branch interfaces of EC2's instance types, which no API tells (E-26).\n",
		"# Written by tools/ec2tables (make tables), never by hand. Figures only; the source's licence is Apache-2.0.\n")
	fmt.Fprintf(w, "region all date=%s %s\ntype trunking branches\n", list.date, list.from.fields())
	for _, kind := range sorted(list.limits) {
		l := list.limits[kind]
		fmt.Fprintln(w, kind, strconv.FormatBool(l.trunking), l.branches)
	}
}

// sorted returns the types, family by family and in each the smaller number first: m5.2xlarge before m5.12xlarge.
func sorted[V any](kinds map[string]V) []string {
	return slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		familyA, sizeA, _ := strings.Cut(a, ".")
		familyB, sizeB, _ := strings.Cut(b, ".")
		return cmp.Or(cmp.Compare(familyA, familyB), cmp.Compare(len(sizeA), len(sizeB)), cmp.Compare(sizeA, sizeB))
	})
}
