package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// This file takes what Karpenter's charts pass beside what Joiner has: settings of Karpenter's that change nothing
// here are accepted, so that a deployment made for Karpenter starts, and each is told once.

// ignoredSettings are Karpenter's settings without effect here, by the names of their flags; true for those that are
// switches.
func ignoredSettings() map[string]bool {
	return map[string]bool{
		"cpu-requests": false, "disable-controller-warmup": true,
		"log-output-paths": false, "log-error-output-paths": false, "legacy-node-repair": true,
		// Of older releases.
		"disable-webhook": true, "webhook-metrics-port": false, "assume-role-arn": false, "assume-role-duration": false,
		// Only ever given as a variable.
		"kubernetes-min-version": false,
	}
}

// addIgnored adds the flags to a set, hidden from the help.
func addIgnored(flags *pflag.FlagSet) {
	for name, isSwitch := range ignoredSettings() {
		flags.String(name, "", "a setting of Karpenter's that has no effect here")
		flag := flags.Lookup(name)
		flag.Hidden = true
		if isSwitch {
			flag.NoOptDefVal = "true"
		}
	}
}

// ignoredNotices names those that were given.
func ignoredNotices(flags *pflag.FlagSet) []string {
	var notices []string
	flags.VisitAll(func(flag *pflag.Flag) { // in the order of their names
		if value := flag.Value.String(); flag.Hidden && value != "" {
			notices = append(notices, fmt.Sprintf("--%s (%s) is %q: it is a setting of Karpenter's and has no effect here",
				flag.Name, strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")), value))
		}
	})
	return notices
}
