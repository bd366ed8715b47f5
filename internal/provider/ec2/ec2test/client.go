package ec2test

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
)

// Config returns the configuration of a client of the endpoint: the controller's.
func (s *Server) Config() aws.Config { return s.config(AccessKey) }

// OthersConfig returns the configuration of another user of the account, with rights of their own: their requests are
// not checked against the policies of a controller.
func (s *Server) OthersConfig() aws.Config { return s.config(othersKey) }

func (s *Server) config(key string) aws.Config {
	return aws.Config{
		Region: s.region, BaseEndpoint: aws.String(s.url),
		HTTPClient: calls.WholeBodies(&http.Client{Transport: s.transport}),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: secretKey, Source: "ec2test"}, nil
		}),
	}
}
