package takeover

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// settingsGiven applies the table of Karpenter's settings to what Karpenter runs with, and to what Joiner would get.
func settingsGiven(p *picture) (found []Finding) {
	add := func(severity Severity, name, consequence, remedy string) {
		found = append(found, Finding{Severity: severity, Kind: KindSettings, Name: name, Consequence: consequence,
			Remedy: remedy})
	}
	for _, key := range p.Refused {
		add(Danger, key, fmt.Sprintf("%s has %s, which the chart joiner does not take: helm install refuses it",
			p.Ours.Where, key),
			"leave it out, and pass what it sets by extraArgs, such as --batch-idle-duration=2s, or by env")
	}
	given := p.Theirs
	if !given.Known() {
		given = p.Ours
	}
	for _, flag := range given.flags() {
		s, known := settings.Find(flag.name)
		switch {
		case !known:
			add(Danger, flag.name,
				fmt.Sprintf("--%s is a flag that Karpenter's releases do not have%s: Joiner does not start with it",
					flag.name, likeFlag(flag.name)), "leave it out, or start Joiner with --unknown-flags=warn")
			continue
		case flag.valued && reads(s.Kind, flag.value) != "":
			add(Danger, s.Name, fmt.Sprintf("--%s is %q, %s: Joiner does not start with it", s.Name, flag.value,
				reads(s.Kind, flag.value)),
				"write it as Karpenter's documentation has it")
			continue
		}
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
	if text, is := given.value(settings.FeatureGates); is {
		_, notices, err := settings.ParseGates(text)
		if err != nil {
			add(Danger, settings.FeatureGates,
				fmt.Sprintf("Joiner does not start with it: %s", strings.ReplaceAll(err.Error(), "\n", "; ")),
				"write each gate as NAME=true or NAME=false")
		}
		for _, notice := range notices {
			add(Info, notice.Setting, notice.Text, "nothing has to be done, unless it is to be otherwise")
		}
	}
	if p.Theirs.Known() && p.Ours.Known() {
		found = append(found, p.changed()...)
	}
	return found
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
