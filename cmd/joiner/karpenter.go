package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// This file accepts what Karpenter's charts pass (K-01 to K-03). Settings of Karpenter without effect here are
// accepted, so that a deployment made for Karpenter starts; each is logged once. Package settings has the table of
// them.

// addIgnored adds the flags without effect to a set, hidden from the help.
func addIgnored(flags *pflag.FlagSet) {
	for _, setting := range settings.Table() {
		if setting.Effect != settings.Ignored {
			continue
		}
		flags.String(setting.Name, "", "a setting of Karpenter's that has no effect here")
		flag := flags.Lookup(setting.Name)
		flag.Hidden = true
		if setting.Kind == settings.Switch {
			flag.NoOptDefVal = "true"
		}
	}
}

// ignoredNotices returns a notice for each of them that was given.
func ignoredNotices(flags *pflag.FlagSet) []joiner.Notice {
	var notices []joiner.Notice
	for _, setting := range settings.Table() {
		flag := flags.Lookup(setting.Name)
		if flag == nil || flag.Value.String() == "" {
			continue
		}
		notices = append(notices, joiner.Notice{Setting: setting.Name, Idle: true,
			Text: fmt.Sprintf("--%s (%s) is %q: it is a setting of Karpenter's and has no effect here",
				setting.Name, setting.Variable(), flag.Value.String())})
	}
	return notices
}

// ofNoProvider returns notices about settings of the EC2 provider that were given to a program without that provider.
func (o *options) ofNoProvider() []joiner.Notice {
	if len(o.Providers) == 0 || slices.Contains(o.Providers, ec2) {
		return nil
	}
	var notices []joiner.Notice
	for _, setting := range settings.Table() {
		flag := o.providers.Lookup(setting.Name)
		if setting.Effect == settings.OfEC2 && flag != nil && flag.Value.String() != flag.DefValue {
			notices = append(notices, joiner.Notice{Setting: setting.Name, Idle: true,
				Text: fmt.Sprintf(
					"--%s (%s) is given and has no effect: it belongs to the provider %s, which --providers leaves out",
					setting.Name, setting.Variable(), ec2)})
		}
	}
	return notices
}

// ec2 is the name of the provider for EC2.
const ec2 = "ec2"

// excuses reports whether an unreadable variable leaves its flag at the default. As in Karpenter, it does so for
// Karpenter's settings.
func (o *options) excuses(mistake commandline.Mistake) bool {
	if _, karpenters := settings.Find(mistake.Flag); !karpenters {
		return false
	}
	o.invalid = append(o.invalid, mistake)
	return true
}

// misread returns errors about how settings are read: a bad value of --unknown-flags, and with --strict-settings each
// unreadable variable.
func (o *options) misread() error {
	var faults []error
	if o.unknown != commandline.RefuseUnknown && o.unknown != commandline.WarnUnknown {
		faults = append(faults, fmt.Errorf("--%s is %q: want %s or %s", commandline.UnknownFlags, o.unknown,
			commandline.RefuseUnknown, commandline.WarnUnknown))
	}
	if o.strict {
		for _, mistake := range o.invalid {
			faults = append(faults, mistake)
		}
	}
	return errors.Join(faults...)
}

// tell logs settings that have another effect than users may expect, and records them for the metrics.
func (o *options) tell(log logr.Logger) {
	for _, mistake := range o.invalid {
		log.Error(mistake.Err, "a variable cannot be read, so its setting has the default", "setting", mistake.Flag,
			"variable", mistake.Variable, "value", mistake.Value)
		o.InvalidSettings = append(o.InvalidSettings, mistake.Flag)
	}
	notices := append(ignoredNotices(o.ignored), o.Notices()...)
	notices = append(notices, o.ofNoProvider()...)
	if o.memoryLimit > 0 && o.memoryLimit < leastMemory {
		notices = append(notices, joiner.Notice{Setting: "memory-limit", Idle: true,
			Text: fmt.Sprintf("--memory-limit is %d bytes, "+
				"less than this program can run in: it has no effect; want bytes, such as 536870912 for 512 Mi",
				o.memoryLimit)})
	}
	for _, name := range o.notKnown {
		notices = append(notices, joiner.Notice{Setting: name, Idle: true,
			Text: fmt.Sprintf("--%s is no flag of this program: it has no effect", name)})
	}
	for _, notice := range notices {
		commandline.Warn(log, notice.Text)
		if notice.Idle {
			o.IgnoredSettings = append(o.IgnoredSettings, notice.Setting)
		}
	}
}
