package takeover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// ofSettings returns a finding about a setting.
func ofSettings(severity Severity, name, consequence, remedy string) Finding {
	return Finding{Severity: severity, Kind: KindSettings, Name: name, Consequence: consequence, Remedy: remedy}
}

// settingsGiven applies the table of Karpenter's settings to what Karpenter runs with, and to what Joiner would get.
func settingsGiven(p *picture) (found []Finding) {
	add := func(severity Severity, name, consequence, remedy string) {
		found = append(found, ofSettings(severity, name, consequence, remedy))
	}
	for _, key := range p.Refused {
		add(Danger, key, fmt.Sprintf("%s has %s, which the chart joiner does not take: helm install refuses it",
			p.Ours.Where, key),
			"leave it out, and pass what it sets by extraArgs, such as --batch-idle-duration=2s, or by env")
	}
	found = append(found, p.Theirs.badFlags("Karpenter's releases do not have", nil)...)
	found = append(found, p.Ours.badFlags("neither Joiner nor Karpenter's releases have", OwnFlags())...)
	given := p.Theirs
	if !given.Known() {
		given = p.Ours
	} else {
		found = append(found, p.Ours.badGates()...)
	}
	for _, s := range settings.Table() {
		value, is := given.value(s.Name)
		if !is {
			continue
		}
		_, byVariable := given.Env[s.Variable()]
		switch bad := reads(s.Kind, value); {
		case bad != "" && byVariable:
			add(Info, s.Name,
				fmt.Sprintf("%s is %q, %s: its setting has the default, as in Karpenter, and Joiner says so",
					s.Variable(), value, bad), "write it as Karpenter's documentation has it")
		case s.Effect == settings.Ignored:
			add(Info, s.Name, fmt.Sprintf("%s is %q: Joiner accepts it, and it has no effect", s.Variable(), value),
				"nothing has to be done")
		case s.Effect == settings.OfEC2 && value != s.Default && !p.servesEC2():
			add(Info, s.Name, fmt.Sprintf("%s is %q: it is a setting of the provider ec2, and no NodePool is of EC2",
				s.Variable(), value),
				"nothing has to be done")
		}
	}
	found = append(found, given.badGates()...)
	if text, is := given.value(settings.FeatureGates); is {
		_, notices, _ := settings.ParseGates(text)
		for _, notice := range notices {
			add(Info, notice.Setting, notice.Text, "nothing has to be done, unless it is to be otherwise")
		}
	}
	if p.Theirs.Known() && p.Ours.Known() {
		found = append(found, p.changed()...)
	}
	return found
}

// badFlags returns findings for flags with which Joiner would not start: unknown ones, and those with a wrong value.
// lack says who does not have an unknown flag; more are flags that are known beside Karpenter's.
func (g Given) badFlags(lack string, more []string) (found []Finding) {
	for _, flag := range g.flags() {
		s, known := settings.Find(flag.name)
		unknown := fmt.Sprintf("--%s in %s is a flag that %s%s", flag.name, g.Where, lack, likeFlag(flag.name, more))
		switch how, _ := g.flagOrVariable(unknownFlags, "UNKNOWN_FLAGS"); {
		case !known && slices.Contains(more, flag.name):
		case !known && how == warnOfUnknown:
			found = append(found, ofSettings(Info, flag.name, unknown+": Joiner ignores it, with a warning",
				"nothing has to be done"))
		case !known:
			found = append(found, ofSettings(Danger, flag.name, unknown+": Joiner does not start with it",
				"leave it out, or start Joiner with --"+unknownFlags+"="+warnOfUnknown))
		case flag.valued && reads(s.Kind, flag.value) != "":
			found = append(found, ofSettings(Danger, s.Name, fmt.Sprintf(
				"--%s is %q in %s, %s: Joiner does not start with it", s.Name, flag.value, g.Where,
				reads(s.Kind, flag.value)), "write it as Karpenter's documentation has it"))
		}
	}
	return found
}

// badGates returns a finding for feature gates with which Joiner would not start.
func (g Given) badGates() []Finding {
	text, _ := g.value(settings.FeatureGates)
	_, _, err := settings.ParseGates(text)
	if err == nil {
		return nil
	}
	return []Finding{ofSettings(Danger, settings.FeatureGates,
		fmt.Sprintf("Joiner does not start with it: %s", strings.ReplaceAll(err.Error(), "\n", "; ")),
		"write each gate as NAME=true or NAME=false")}
}

// changed returns findings for Karpenter's settings that Joiner would get differently, or not at all.
func (p *picture) changed() (found []Finding) {
	for _, s := range settings.Table() {
		theirs, was := p.Theirs.value(s.Name)
		ours, is := p.Ours.value(s.Name)
		if !was || s.Effect == settings.Ignored || theirs == ours || !is && theirs == s.Default && s.Ours == "" {
			continue
		}
		now := fmt.Sprintf("%q", ours)
		if !is {
			now = "not given"
		}
		found = append(found, Finding{Severity: Info, Kind: KindSettings, Name: s.Name,
			Consequence: fmt.Sprintf("%s is %q in %s, and %s in %s", s.Variable(), theirs, p.Theirs.Where, now,
				p.Ours.Where),
			Remedy: "give it to Joiner too, if it is to stay as it is"})
	}
	return found
}

// servesEC2 reports whether any pool is of EC2.
func (p *picture) servesEC2() bool {
	for _, pool := range p.pools {
		if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Kind == "EC2NodeClass" {
			return true
		}
	}
	return false
}

// Notes returns what the check could not see of the settings.
func (in Input) Notes() (notes []string) {
	if !in.Theirs.Known() {
		notes = append(notes,
			"no Deployment of Karpenter's was found: its settings are taken to be its defaults; --from-deployment names it")
	}
	for _, g := range []Given{in.Theirs, in.Ours} {
		if len(g.Elsewhere) > 0 {
			notes = append(notes, fmt.Sprintf("%s takes variables from elsewhere, which are not read: %s", g.Where,
				strings.Join(g.Elsewhere, ", ")))
		}
	}
	return notes
}
