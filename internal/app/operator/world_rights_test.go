package operator

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// rights are the rules of a chart.
type rights []rbacv1.PolicyRule

// readRights reads all rules below some directories of the charts.
func readRights(t *testing.T, dirs ...string) (all rights) {
	t.Helper()
	for _, dir := range dirs {
		root := filepath.Join("../../../charts", dir)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "alerts.yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var rules rights
			if err := yaml.Unmarshal(text, &rules); err != nil {
				return err
			}
			all = append(all, rules...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkRights checks that the charts give the right to a request.
func (w *world) checkRights(call apiserver.Call) {
	gvk, err := apiutil.GVKForObject(call.Object, w.scheme)
	if err != nil {
		w.fail("%w", err)
		return
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	resource := plural.Resource
	if call.Part == apiserver.Status {
		resource += "/status"
	}
	if !slices.ContainsFunc(w.rights, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, gvk.Group) && slices.Contains(rule.Resources, resource) &&
			slices.Contains(rule.Verbs, strings.ToLower(call.Verb)) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, call.Key.Name))
	}) {
		w.fail("no chart gives the right to %s %s %s", call.Verb, resource, call.Key.Name)
	}
}
