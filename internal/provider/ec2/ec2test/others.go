package ec2test

// others is the state of the services beside EC2.
type others struct {
	ssm      map[string]string // parameters by name
	queues   map[string]*queue
	news     chan struct{} // closed when a queue has something new
	profiles map[string]*instanceProfile
	roles    map[string]bool
	clusters map[string]Cluster
}

func newOthers() others {
	return others{
		ssm: map[string]string{}, queues: map[string]*queue{}, news: make(chan struct{}),
		profiles: map[string]*instanceProfile{},
		roles:    map[string]bool{}, clusters: map[string]Cluster{},
	}
}
