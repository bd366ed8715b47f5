package ec2test

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Config returns the configuration of a client of the endpoint.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region: s.region, BaseEndpoint: aws.String(s.url), HTTPClient: wholeBodies{s.transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: secretKey, Source: "ec2test"}, nil
		}),
	}
}

// wholeBodies sends requests whose bodies the SDK does not hold any more. With smithy-go 1.28 it has to be: as soon as
// an answer begins, the SDK closes the request's body, and from then on its WriteTo returns io.EOF as an error.
// net/http may still be looking whether the body has ended; it takes that for a failed request and cuts the answer
// off. An endpoint on the same machine answers fast enough for that, about one time in thirty on a busy one.
type wholeBodies struct{ http.RoundTripper }

// Do is what the SDK calls.
func (w wholeBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return w.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	sent := r.Clone(r.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	return w.RoundTrip(sent)
}
