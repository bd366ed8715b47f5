package ec2test

// Cluster is EKS' description of a cluster.
type Cluster struct {
	Name, Version, Endpoint string
	CA                      string // in base64
	CIDR, CIDR6             string // of services
}

// AddCluster adds a cluster to EKS.
func (s *Server) AddCluster(c Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[c.Name] = c
}

func eksActions() map[string]action {
	return map[string]action{"DescribeCluster": typed(restJSON{}, describeCluster)}
}

func describeCluster(c *call, name *string) (any, error) {
	arn := "arn:aws:eks:" + c.region + ":" + Account + ":cluster/" + *name
	cluster, exists := c.clusters[*name]
	if err := c.authorize(Ask{Action: c.name(), Resource: arn, Missing: !exists}); err != nil {
		return nil, err
	}
	if !exists {
		return nil, refuse(404, "ResourceNotFoundException", "No cluster found for name: %s.", *name)
	}
	network := map[string]string{"ipFamily": "ipv4", "serviceIpv4Cidr": cluster.CIDR}
	if cluster.CIDR6 != "" {
		network = map[string]string{"ipFamily": "ipv6", "serviceIpv6Cidr": cluster.CIDR6}
	}
	return map[string]any{"cluster": map[string]any{
		"name": cluster.Name, "arn": arn, "status": "ACTIVE", "version": cluster.Version, "endpoint": cluster.Endpoint,
		"certificateAuthority": map[string]string{"data": cluster.CA}, "kubernetesNetworkConfig": network,
	}}, nil
}
