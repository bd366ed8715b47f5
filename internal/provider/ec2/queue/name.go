package queue

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Address is where a queue is.
type Address struct {
	Name string
	// Region, Account and URL are the given parts. "" means the process's region and account, and the URL that SQS
	// returns for the name.
	Region, Account, URL string
}

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	regionForm  = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
)

// ParseAddress reads a queue's name, URL or ARN (E-51). The error says what is wrong with it and what is allowed.
func ParseAddress(text string) (Address, error) {
	bad := func(why string) (Address, error) {
		return Address{}, fmt.Errorf("--interruption-queue is %q: %s; give a name such as my-cluster, a URL such as "+
			"https://sqs.eu-west-1.amazonaws.com/123456789012/my-cluster or an ARN such as "+
			"arn:aws:sqs:eu-west-1:123456789012:my-cluster", text, why)
	}
	var a Address
	switch {
	case strings.HasPrefix(text, "arn:"):
		parts := strings.Split(text, ":")
		if len(parts) != 6 || parts[1] == "" || parts[2] != "sqs" {
			return bad("this is no ARN of an SQS queue")
		}
		a = Address{Name: parts[5], Region: parts[3], Account: parts[4]}
		if !regionForm.MatchString(a.Region) {
			return bad("the ARN names no region")
		}
		if !accountForm.MatchString(a.Account) {
			return bad("the ARN's account has not 12 digits")
		}
	case strings.Contains(text, "://"):
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return bad("this is no URL of a queue")
		}
		path := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
		if u.RawQuery != "" || u.Fragment != "" || u.User != nil || len(path) < 2 {
			return bad("its path has not an account and a name")
		}
		a = Address{Name: path[len(path)-1], Account: path[len(path)-2], Region: regionOf(u.Hostname()), URL: text}
		if !accountForm.MatchString(a.Account) {
			return bad("the URL's account has not 12 digits")
		}
	default:
		a = Address{Name: text}
	}
	if !nameForm.MatchString(strings.TrimSuffix(a.Name, ".fifo")) || len(a.Name) > 80 {
		return bad("a name has 1 to 80 letters, digits, hyphens and underscores")
	}
	return a, nil
}

// regionOf returns the region in a host name of SQS: sqs.REGION.…, REGION.queue.…, or below a VPC endpoint; "" for
// others.
func regionOf(host string) string {
	labels := strings.Split(host, ".")
	for i, label := range labels[:len(labels)-1] {
		if (label == "sqs" || label == "sqs-fips") && regionForm.MatchString(labels[i+1]) {
			return labels[i+1]
		}
		if labels[i+1] == "queue" && regionForm.MatchString(label) {
			return label
		}
	}
	return ""
}
