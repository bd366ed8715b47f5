package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// poolForm is how lines about pools go on after the name.
const poolForm = " hard=LIMIT soft=LIMIT weight=N after=TIME policy=TEXT budget=TEXT expire=TIME graceful" +
	" terminate-first overhead=NUMBER grace=TIME replicas=N"

// resourceForm is what pods and LimitRanges may request, and their limits.
const resourceForm = " cpu=AMOUNT mem=AMOUNT cpu-limit=AMOUNT mem-limit=AMOUNT"

// forms say how a line goes on after its verb. Words in capitals are in their places, those in brackets may be left
// out at the end; the others are options in any order. What has another form would be read as something that nobody
// wrote.
var forms = map[string]string{
	"ail": "N [TIME]", "attach": "most=N stated=N",
	"buffer": "NAME replicas=N cpu=AMOUNT", "claim": "NAME pool=TEXT", "classless": "TIME",
	"cluster-limit": "N overlap=TIME",
	"commitment":    "NAME none dollars=NUMBER instances=N types=TEXT zone=TEXT",
	"complete":      "N Succeeded|Failed", "count": "requests", "crash": "",
	"daemons":       "NAME injected=AMOUNT all pdb=N unavailable=N need=TEXT port=N" + resourceForm,
	"delete-buffer": "NAME", "delete-claim": "N", "delete-node": "N", "delete-pod": "N", "delete-pool": "NAME",
	"drift": "NAME", "drift-claim": "N",
	"edit":  "NAME after=TIME budget=TEXT policy=TEXT weight=N",
	"fault": "N [cured|stubborn|lost]", "hold": "node|claim N", "inherit": "NAME hard=LIMIT soft=LIMIT",
	"forbid":    "NAME",
	"interrupt": "N notice=TIME", "jump": "TIME", "keep": "NAME min-nodes=TEXT headroom=TEXT spot-ratio=TEXT",
	"limit": "NAME hard=LIMIT soft=LIMIT", "limit-range": "NAME" + resourceForm, "lose-table": "",
	"meddle": "N TEXT", "meddle-claim": "N TEXT", "mend": "all",
	"node-class": "image subnets=TEXT tags=TEXT",
	"other-end":  "node|claim N takes=TIME", "other-pool": "NAME" + poolForm,
	"other-node":  "NAME pool=TEXT bare lost early booting silent expired drifted marked",
	"other-touch": "node|claim|pool N", "pause": "TIME", "pause-pool": "NAME TEXT", "pool": "NAME" + poolForm,
	"protect-pod": "N TEXT", "relabel": "N NAME", "relabel-node": "N NAME", "relist": "KIND TIME",
	"reserve": "TYPE ZONE N",
	"remake":  "NAME" + poolForm, "replicas": "NAME N", "require": "NAME TEXT", "run-out": "N", "scale": "NAME N",
	"second": "TIME",
	"see": "claims=TEXT machines=N waiting=N silent=N reboots=N launches=N spared=N" +
		" nodes=TEXT",
	"sicken": "N TIME", "spoil": "all|bindings",
	"spot-price": "ZONE NUMBER", "stall": "KIND TIME", "strip-claim": "N", "switch": "on|off",
	"vanish": "N",
	"weather": "tokens=TEXT late-share=NUMBER late-most=TIME rate=NUMBER vcpus=N room=N" +
		" addresses=N",
	"workload": "NAME replicas=N grace=TIME pdb=N unavailable=N together=TEXT apart=TEXT spread=TEXT alone protect" +
		" clings bare priority=N disk=TEXT need=TEXT port=N" + resourceForm,
}

// checkForm reports what is wrong with the words after a verb.
func checkForm(verb string, words []string) error {
	form := strings.Fields(forms[verb])
	wrong := func(text string) error {
		return fmt.Errorf("%s; want %s", text, strings.Join(append([]string{verb}, form...), " "))
	}
	var options []string
	for _, part := range form {
		if !isPlace(part) {
			options = append(options, part)
			continue
		}
		kind := strings.Trim(part, "[]")
		if len(words) == 0 || strings.Contains(words[0], "=") {
			if kind == part {
				return wrong(kind + " is missing")
			}
			continue
		}
		if !fitsKind(words[0], kind) {
			return wrong(fmt.Sprintf("%q is no %s", words[0], kind))
		}
		words = words[1:]
	}
	for i, word := range words {
		key, value, valued := strings.Cut(word, "=")
		at := slices.IndexFunc(options, func(option string) bool {
			name, _, takes := strings.Cut(option, "=")
			return name == key && takes == valued
		})
		if at < 0 {
			return wrong(fmt.Sprintf("%q means nothing here", word))
		}
		if _, kind, _ := strings.Cut(options[at], "="); !fitsKind(value, kind) {
			return wrong(fmt.Sprintf("%s is %q: want %s", key, value, kind))
		}
		if slices.ContainsFunc(words[:i], func(other string) bool { return strings.HasPrefix(other, key+"=") }) &&
			verb != "see" {
			return wrong(key + " stands there twice")
		}
	}
	return nil
}

// isPlace reports whether a part of a form stands for a word in its place, not for an option.
func isPlace(part string) bool {
	return !strings.Contains(part, "=") && (strings.ToUpper(part) == part || strings.Contains(part, "|"))
}

// fitsKind reports whether a word is of the kind that a form names.
func fitsKind(word, kind string) bool {
	var err error
	switch kind {
	case "N":
		_, err = strconv.ParseInt(word, 10, 64)
	case "LIMIT":
		if word != none {
			_, err = strconv.ParseInt(word, 10, 64)
		}
	case "NUMBER":
		_, err = strconv.ParseFloat(word, 64)
	case "TIME":
		_, err = time.ParseDuration(word)
	case "AMOUNT":
		_, err = resource.ParseQuantity(word)
	case "", "NAME", "TEXT", "KIND", "TYPE", "ZONE":
		return kind == "" || word != ""
	default:
		return slices.Contains(strings.Split(kind, "|"), word)
	}
	return err == nil
}
