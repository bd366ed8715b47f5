package ec2test

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// data are answers of DescribeInstanceTypes and DescribeInstanceTypeOfferings, as the project moto publishes them
// (github.com/getmoto/moto, Apache-2.0), as of August 2026. They are facts of AWS, for tests only.
//
//go:embed data/*.json.gz
var data embed.FS

// Types returns the instance types that EC2 sells, by name.
func Types(t testing.TB) map[string]ec2types.InstanceTypeInfo {
	t.Helper()
	types := map[string]ec2types.InstanceTypeInfo{}
	if err := load("instance-types", &types); err != nil {
		t.Fatal(err)
	}
	return types
}

// load reads one of the files.
func load(name string, into any) error {
	packed, err := data.ReadFile("data/" + name + ".json.gz")
	if err != nil {
		return err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	return json.NewDecoder(reader).Decode(into)
}
