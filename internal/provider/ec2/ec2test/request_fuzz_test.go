package ec2test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// no request of any service makes the endpoint panic, and each is answered. Unknown ones are reported.
func FuzzRequests(f *testing.F) {
	full, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	fleet := "&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=t1&Type=instant" +
		"&LaunchTemplateConfigs.1.Overrides.1.InstanceType=c5.large&TargetCapacitySpecification.TotalTargetCapacity=1"
	made := "&LaunchTemplateName=t1&LaunchTemplateData.ImageId=ami-1"
	for _, seed := range [][2]string{
		{"ec2", "CreateFleet" + fleet}, {"ec2", "CreateLaunchTemplate" + made}, {"ec2",
			"DescribeInstances&Filter.1.Name=vpc-id"},
		{"ec2", "RunInstances&DryRun=true&MinCount=1&LaunchTemplate.LaunchTemplateName=t1"}, {"ec2",
			"TerminateInstances&InstanceId.1=i-1"},
		{"ec2", "CreateTags&ResourceId.1=lt-1&Tag.1.Key=a"},
		{"iam", "CreateInstanceProfile&InstanceProfileName=p&Path=/x/"},
		{"iam", "ListInstanceProfiles&MaxItems=1"}, {"ssm", `GetParameters {"Names":["/a"]}`}, {"sqs",
			`ReceiveMessage {"QueueUrl":"q"}`},
		{"ec2", "CreateFleet" + strings.Replace(fleet, "Capacity=1", "Capacity=10000", 1)},
		{"pricing", `GetProducts {"ServiceCode":"AmazonEC2","MaxResults":1}`}, {"eks", "/clusters/c1"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, service, text string) {
		s := blank(Options{PageSize: 3, Region: "us-east-1"})
		s.types, s.zonesOf = full.types, full.zonesOf
		if err := s.SetFaults(Faults{}); err != nil {
			t.Fatal(err)
		}
		of, known := s.services[service]
		if !known {
			return
		}
		s.AddNetwork("c1", "us-east-1a")
		s.AddQueue("q")
		s.template["lt-1"] = &template{id: "lt-1", name: "t1", data: templateData{ImageID: s.AddImage(Image{}).ID}}
		r, body := requestOf(service, text)
		a := answer{protocol: of.protocol}
		s.dispatch(&a, of, identity{service: service}, r, body, false)
		w := httptest.NewRecorder()
		s.write(w, a)
		var no *refused
		if w.Code >= http.StatusInternalServerError && !(errors.As(a.err, &no) &&
			no.status >= http.StatusInternalServerError) {
			t.Errorf("answered with %d: %s", w.Code, w.Body)
		}
	})
}

// requestOf returns a request in the service's protocol.
func requestOf(service, text string) (*http.Request, []byte) {
	switch service {
	case "ec2", "iam":
		version := map[string]string{"ec2": ec2Version, "iam": iamVersion}[service]
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r, []byte("Version=" + version + "&Action=" + text)
	case "eks":
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.URL.Path = text
		return r, nil
	}
	target := map[string]string{"ssm": "AmazonSSM", "sqs": "AmazonSQS", "pricing": "AWSPriceListService"}[service]
	version := map[string]string{"ssm": "1.1", "sqs": "1.0", "pricing": "1.1"}[service]
	action, body, _ := strings.Cut(text, " ")
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	r.Header.Set("X-Amz-Target", target+"."+action)
	r.Header.Set("Content-Type", "application/x-amz-json-"+version)
	return r, []byte(body)
}
