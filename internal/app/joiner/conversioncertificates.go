package joiner

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// filesEvery is how often the files of certificates are read.
const filesEvery = 10 * time.Second

// conversionCertificates returns the certificates of the conversion webhook: its own, or from files. It writes the CA
// bundle into the CRDs.
func conversionCertificates(ctx context.Context, config Config, direct client.Client,
	log logr.Logger) (serve.KeptCertificates, error) {
	names, err := convertedNames()
	if err != nil {
		return serve.KeptCertificates{}, err
	}
	targets := make([]certificate.Target, len(names))
	for i, name := range names {
		if _, err := definition(ctx, direct, name); client.IgnoreNotFound(err) != nil {
			return serve.KeptCertificates{}, fmt.Errorf(
				"reading the CustomResourceDefinition %s (the rights for --v1beta1 are in deploy/v1beta1.yaml): %w",
				name, err)
		}
		// EC2NodeClass may be installed later
		targets[i] = certificate.IfPresent(certificate.ConvertedDefinition(direct, name))
	}
	hosts := []string{config.host(config.SystemNamespace)}
	if config.TLSCertFile != "" {
		given, err := certificate.NewGiven(certificate.GivenConfig{Read: config.readCertificates, Hosts: hosts,
			Targets: targets}, time.Now())
		return serve.KeptCertificates{Stepped: given, Every: filesEvery, Within: serve.CertificateStepWithin,
			Log: log}, err
	}
	own, err := serve.NewOwnCertificates(certificate.Config{
		Terms:   certificate.Terms{Name: "joiner", Hosts: hosts, Lifetime: config.CertLifetime},
		Store:   certificate.SecretStore(direct, config.SystemNamespace, conversionSecret),
		Targets: targets,
	}, log)
	return own.KeptCertificates, err
}

// readCertificates reads the certificate files that somebody else maintains.
func (c Conversion) readCertificates() (content certificate.Content, err error) {
	for _, file := range []struct {
		flag, path string
		into       *certificate.Part
	}{
		{"--tls-cert-file", c.TLSCertFile, &content.Certificate},
		{"--tls-key-file", c.TLSKeyFile, &content.Key},
		{"--tls-ca-file", c.TLSCAFile, &content.Authorities},
	} {
		file.into.Name = file.flag + " " + file.path
		if file.into.Data, err = os.ReadFile(file.path); err != nil {
			return certificate.Content{}, fmt.Errorf("%s: %w", file.flag, err)
		}
	}
	return content, nil
}
