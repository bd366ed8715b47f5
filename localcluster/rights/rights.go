// Package rights compares a program's rights with its requests in the API server's audit log (U-11). A right that no
// request needs should not be granted, and a request without a right should not be made.
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

// Of returns the right to a verb on a resource, which may have a subresource after a slash.
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

// Granted returns the rights that rules give. The rules are a list in YAML.
func Granted(rules []byte) (map[Right]bool, error) {
	var list []rbacv1.PolicyRule
	if err := yaml.Unmarshal(rules, &list); err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	all := map[Right]bool{}
	Add(all, list)
	return all, nil
}

// Add adds the rights of rules to a set.
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

// Used counts the requests of a user in an audit log, by the right that each needs. Only requests with the program's
// user agent count, since tests may use its user name too. The log has a watch once it has ended.
func Used(auditLog, user, program string) (map[Right]int, error) {
	used := map[Right]int{}
	err := cluster.ReadAudit(auditLog, func(e cluster.Event) {
		if e.User == user && strings.HasPrefix(e.UserAgent, program) && e.Resource != "" {
			used[OfRequest(e)]++
		}
	})
	return used, err
}

// OfRequest returns the right that a request needs.
func OfRequest(e cluster.Event) Right {
	resource := e.Resource
	if e.Sub != "" {
		resource += "/" + e.Sub
	}
	return Of(e.Verb, resource, e.Group)
}

// ByChance begins the reason of a right that tests need only sometimes.
const ByChance = "by chance: "

// Unneeded returns what is wrong with rights: granted rights that no request needed and spare does not name, and
// rights that spare names although they are not granted or a request needed them. spare has the reason of each. The
// result is in the order of the rights. With a reason that begins with [ByChance], a request may need the right.
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

// Use is what programs have requested in several clusters, summed up.
type Use map[Right]int

// Add adds what a program has requested in one cluster.
func (u Use) Add(auditLog, user, userAgent string) error {
	used, err := Used(auditLog, user, userAgent)
	for right, times := range used {
		u[right] += times
	}
	return err
}

// AllNeeded returns an error that names rights that no request in any cluster needed. It returns nil if only some
// tests of the package run.
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

// Whole reports whether all tests of the package run. Fewer tests may not need every right.
func Whole() bool {
	run, skip := flag.Lookup("test.run"), flag.Lookup("test.skip")
	return run != nil && run.Value.String() == "" && (skip == nil || skip.Value.String() == "")
}
