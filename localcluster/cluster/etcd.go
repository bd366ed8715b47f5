package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// WriteEtcd writes a value to etcd directly, to imitate a fault of the storage: for example a record that nobody can
// read. Keys are those of the API server: /registry/... .
func (c *Cluster) WriteEtcd(ctx context.Context, key string, value []byte) error {
	return c.askEtcd(ctx, "put", map[string][]byte{"key": []byte(key), "value": value})
}

// RemoveEtcd removes a key that WriteEtcd wrote.
func (c *Cluster) RemoveEtcd(ctx context.Context, key string) error {
	return c.askEtcd(ctx, "deleterange", map[string][]byte{"key": []byte(key)})
}

// askEtcd sends a request to etcd's JSON API, in which keys and values are base64.
func (c *Cluster) askEtcd(ctx context.Context, what string, body map[string][]byte) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.setup.ports.url(etcdClientPort, "/v3/kv/"+what),
		bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: c.setup.etcdTLS}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd to %s: %w", what, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd to %s: status %s", what, response.Status)
	}
	return nil
}
