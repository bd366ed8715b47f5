// Package rights compares the rights that a program is granted with the requests that it makes, as the API server's
// audit log has them (U-11). A right that no request needs should not be granted, and a request without a right should
// not be made.
package rights

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// Right is a verb on a resource, as "verb resource.group/subresource". The core group has no name.
type Right string

// Of names the right to a verb on a resource, which may have a subresource after a slash.
func Of(verb, resource, group string) Right {
	name, sub, _ := strings.Cut(resource, "/")
	if group != "" {
		name += "." + group
	}
	if sub != "" {
		name += "/" + sub
	}
	return Right(verb + " " + name)
}

// Granted are the rights that rules give, a list in YAML.
func Granted(rules []byte) (map[Right]bool, error) {
	var list []rbacv1.PolicyRule
	if err := yaml.Unmarshal(rules, &list); err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	all := map[Right]bool{}
	Add(all, list)
	return all, nil
}

// Add adds the rights of rules to those that are known.
func Add(to map[Right]bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					to[Of(verb, resource, group)] = true
				}
			}
		}
	}
}

// Used counts the requests of a user in an audit log, by the right that each needs: those of the program that calls
// itself so, since tests may use its name too. A watch is in the log once it has ended.
func Used(auditLog, user, program string) (map[Right]int, error) {
	used := map[Right]int{}
	err := cluster.ReadAudit(auditLog, func(e cluster.Event) {
		if e.User == user && strings.HasPrefix(e.UserAgent, program) && e.Resource != "" {
			used[OfRequest(e)]++
		}
	})
	return used, err
}

// OfRequest is the right that a request needs.
func OfRequest(e cluster.Event) Right {
	resource := e.Resource
	if e.Sub != "" {
		resource += "/" + e.Sub
	}
	return Of(e.Verb, resource, e.Group)
}

// ByChance begins the reason of a right that requests need to which tests lead by chance only.
const ByChance = "by chance: "

// Unneeded says what is wrong with rights: those that no request needed and that spare does not name, and those that
// spare names although they are not granted, or although a request needed them. Spare has the reason of each. The list
// is in the order of the rights. A reason that begins with [ByChance] is that of a right which a request may need.
func Unneeded(granted map[Right]bool, used map[Right]int, spare map[Right]string) (wrong []string) {
	for _, right := range slices.Sorted(maps.Keys(granted)) {
		switch reason, named := spare[right]; {
		case used[right] == 0 && !named:
			wrong = append(wrong, fmt.Sprintf("%q is granted, and no request needs it", right))
		case used[right] > 0 && named && !strings.HasPrefix(reason, ByChance):
			wrong = append(wrong, fmt.Sprintf("%q is called spare (%s), and %d requests need it", right, reason,
				used[right]))
		}
	}
	for _, right := range slices.Sorted(maps.Keys(spare)) {
		if !granted[right] {
			wrong = append(wrong, fmt.Sprintf("%q is called spare, and is not granted", right))
		}
	}
	return wrong
}

// Use is what programs have asked for in several clusters, summed up.
type Use map[Right]int

// Add adds what a program has asked for in one cluster.
func (u Use) Add(auditLog, user, userAgent string) error {
	used, err := Used(auditLog, user, userAgent)
	for right, times := range used {
		u[right] += times
	}
	return err
}

// AllNeeded returns an error that names the rights of a program that no request needed, in all clusters whose use it
// is given. It returns nil when only some tests of the package run.
func AllNeeded(use Use, user string, spare map[Right]string, rules ...[]byte) error {
	if !Whole() {
		return nil
	}
	granted, err := Granted(slices.Concat(rules...))
	if err != nil {
		return err
	}
	if wrong := Unneeded(granted, use, spare); len(wrong) > 0 {
		return fmt.Errorf("rights of %s (U-11):\n%s", user, strings.Join(wrong, "\n"))
	}
	return nil
}

// Whole reports whether all tests of the package run. One test alone does not need every right.
func Whole() bool {
	run, skip := flag.Lookup("test.run"), flag.Lookup("test.skip")
	return run != nil && run.Value.String() == "" && (skip == nil || skip.Value.String() == "")
}
