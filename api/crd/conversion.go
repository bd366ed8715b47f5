package crd

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
)

// Webhook says where the API server finds the conversion of our kinds. Either URL or Service and Namespace are given.
type Webhook struct {
	// URL is the address of the conversion, with https, for an API server that cannot reach services.
	URL string
	// Namespace and Service name the service in front of the conversion, Path the path of the request and Port the
	// port of the service.
	Namespace, Service, Path string
	Port                     int32
	// CABundle are the certificates, in PEM, that the server's certificate is checked with.
	CABundle []byte
}

// clientConfigPlace is where the generated manifests of conversion lack the clientConfig.
const clientConfigPlace = "spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n"

// Converting returns the manifests of NodePool, NodeClaim and EC2NodeClass that serve v1beta1 beside v1, with v1 as
// the stored version and the webhook as the converter (V-20). They take the place of the manifests of the same names
// in Manifests. An incomplete Webhook is an error.
func Converting(webhook Webhook) (map[string][]byte, error) {
	config, err := webhook.clientConfig()
	if err != nil {
		return nil, err
	}
	found, err := manifests("conversion")
	if err != nil {
		return nil, err
	}
	for name, content := range found {
		if bytes.Count(content, []byte(clientConfigPlace)) != 1 {
			return nil, fmt.Errorf("the manifest %s has no place for a webhook", name)
		}
		found[name] = bytes.Replace(content, []byte(clientConfigPlace), []byte(clientConfigPlace+config), 1)
	}
	return found, nil
}

// Unconverted returns the manifests of Converting without a webhook, for their schemas: an API server refuses them.
func Unconverted() (map[string][]byte, error) { return manifests("conversion") }

func (w Webhook) clientConfig() (string, error) {
	if len(w.CABundle) == 0 {
		return "", errors.New("the conversion webhook has no CA bundle: the API server could not trust it")
	}
	config := fmt.Sprintf("      clientConfig:\n        caBundle: %s\n", base64.StdEncoding.EncodeToString(w.CABundle))
	switch {
	case (w.URL == "") == (w.Service == ""):
		return "", errors.New("the conversion webhook needs either a URL or a service")
	case w.URL != "":
		return config + fmt.Sprintf("        url: %q\n", w.URL), nil
	case w.Namespace == "" || w.Path == "" || w.Port < 1 || w.Port > 65535:
		return "",
			fmt.Errorf(
				"the service of the conversion webhook is namespace %q, path %q, port %d: give all, the port from 1 to 65535",
				w.Namespace, w.Path, w.Port)
	}
	return config + fmt.Sprintf(
		"        service:\n          name: %q\n          namespace: %q\n          path: %q\n          port: %d\n",
		w.Service, w.Namespace, w.Path, w.Port), nil
}
