package crd

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type definition struct {
	Spec struct {
		Conversion struct {
			Strategy string
			Webhook  struct {
				ClientConfig struct {
					URL      string
					CABundle []byte
					Service  struct {
						Name, Namespace, Path string
						Port                  int32
					}
				}
				ConversionReviewVersions []string
			}
		}
		Versions []struct {
			Name            string
			Served, Storage bool
		}
	}
}

// V-20: both versions are served, v1 is stored, and the webhook converts. The installed manifests stay as they are.
func TestTheConvertingManifestsNameTheWebhook(t *testing.T) {
	t.Parallel()
	found, err := Converting(Webhook{Namespace: "system", Service: "joiner", Path: "/convert", Port: 8443,
		CABundle: []byte("ca")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"karpenter.k8s.aws_ec2nodeclasses.yaml", "karpenter.sh_nodeclaims.yaml",
		"karpenter.sh_nodepools.yaml"}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Fatalf("manifests = %q, want %q", got, want)
	}
	for name, content := range found {
		var d definition
		if err := yaml.Unmarshal(content, &d); err != nil {
			t.Fatal(err)
		}
		config := d.Spec.Conversion.Webhook.ClientConfig
		if d.Spec.Conversion.Strategy != "Webhook" || config.Service.Name != "joiner" || config.Service.Port != 8443 ||
			config.Service.Path != "/convert" || string(config.CABundle) != "ca" ||
			len(d.Spec.Conversion.Webhook.ConversionReviewVersions) != 1 {
			t.Errorf("%s: conversion is %+v", name, d.Spec.Conversion)
		}
		for _, version := range d.Spec.Versions {
			if !version.Served || version.Storage != (version.Name == "v1") {
				t.Errorf("%s: version %+v", name, version)
			}
		}
		if len(d.Spec.Versions) != 2 {
			t.Errorf("%s: %d versions, want v1 and v1beta1", name, len(d.Spec.Versions))
		}
	}
	installed, err := Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range installed {
		if strings.Contains(string(content), "name: v1beta1") &&
			!strings.Contains(string(content), "group: autoscaling.x-k8s.io") {
			t.Errorf("%s serves v1beta1 without a conversion", name)
		}
	}
}

func TestAnIncompleteWebhookIsRefused(t *testing.T) {
	t.Parallel()
	for want, webhook := range map[string]Webhook{
		"no CA bundle":             {URL: "https://host/convert"},
		"either a URL or a servic": {CABundle: []byte("ca")},
		"port 0":                   {CABundle: []byte("ca"), Service: "s", Namespace: "n", Path: "/p"},
	} {
		if _, err := Converting(webhook); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", webhook, err, want)
		}
	}
	if _, err := Converting(Webhook{CABundle: []byte("ca"), URL: "https://host/convert"}); err != nil {
		t.Error(err)
	}
}
