package ec2test

import (
	"cmp"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

// iamQuery is IAM's protocol: a form in, XML out, in an envelope other than EC2's.
type iamQuery struct{}

const iamVersion = "2010-05-08"

func (iamQuery) read(r *http.Request, body []byte) (string, any, error) {
	return readQuery(r, body, iamVersion)
}

func (iamQuery) decode(parameters, into any) error { return decodeForm(parameters.(*parameter), into) }

func (iamQuery) answer(w http.ResponseWriter, a answer) error {
	inner, err := innerXML(a.result)
	if err != nil {
		return err
	}
	type result struct {
		XMLName xml.Name
		Inner   []byte `xml:",innerxml"`
	}
	w.Header().Set("Content-Type", "text/xml")
	return writeXML(w, http.StatusOK, struct {
		XMLName xml.Name
		NS      string `xml:"xmlns,attr"`
		Result  result
		ID      string `xml:"ResponseMetadata>RequestId"`
	}{
		XMLName: xml.Name{Local: a.action + "Response"}, NS: "https://iam.amazonaws.com/doc/" + iamVersion + "/",
		Result: result{xml.Name{Local: a.action + "Result"}, inner}, ID: a.id,
	})
}

func (iamQuery) refuse(w http.ResponseWriter, id string, no *refused) {
	code := no.code
	switch code {
	case codeUnknownKey:
		code = "InvalidClientTokenId"
	case codeInternal:
		code = "ServiceFailure"
	}
	w.Header().Set("Content-Type", "text/xml")
	_ = writeXML(w, no.status, struct {
		XMLName xml.Name `xml:"ErrorResponse"`
		Type    string   `xml:"Error>Type"`
		Code    string   `xml:"Error>Code"`
		Message string   `xml:"Error>Message"`
		ID      string   `xml:"RequestId"`
	}{Type: "Sender", Code: code, Message: no.message, ID: id})
}

func iamActions() map[string]action {
	p := iamQuery{}
	return map[string]action{
		"GetInstanceProfile":            typed(p, getInstanceProfile),
		"CreateInstanceProfile":         typed(p, createInstanceProfile),
		"AddRoleToInstanceProfile":      typed(p, addRole),
		"RemoveRoleFromInstanceProfile": typed(p, removeRole),
		"DeleteInstanceProfile":         typed(p, deleteInstanceProfile),
		"ListInstanceProfiles":          typed(p, listInstanceProfiles),
		"TagInstanceProfile":            typed(p, tagInstanceProfile),
		"CreateRole":                    typed(p, createRole),
		"DeleteRole":                    typed(p, deleteRole),
	}
}

// instanceProfile is an instance profile. Launches can use it some time after it was made.
type instanceProfile struct {
	name, path, role string
	tags             map[string]string
	created          time.Time
}

// AddRole adds a role that instance profiles can have.
func (s *Server) AddRole(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[name] = true
}

// AddInstanceProfile adds an instance profile with a role, as if it had existed for long; or gives an existing one
// another role.
func (s *Server) AddInstanceProfile(name, role string) { s.AddInstanceProfileAt("/", name, role, nil) }

// AddInstanceProfileAt adds one with a path and tags, as if another program had created it.
func (s *Server) AddInstanceProfileAt(path, name, role string, tags map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[role] = true
	if p := s.profiles[name]; p != nil {
		p.role = role
		return
	}
	const long = 365 * 24 * time.Hour
	p := &instanceProfile{name: name, path: path, role: role, tags: map[string]string{}, created: s.now().Add(-long)}
	maps.Copy(p.tags, tags)
	s.profiles[name] = p
}

// InstanceProfiles returns the roles of the existing instance profiles, by name of the profile.
func (s *Server) InstanceProfiles() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for name, p := range s.profiles {
		all[name] = p.role
	}
	return all
}

func (p *instanceProfile) arn() string {
	return "arn:aws:iam::" + Account + ":instance-profile" + p.path + p.name
}

type roleXML struct {
	Path    string `xml:"Path"`
	Name    string `xml:"RoleName"`
	ID      string `xml:"RoleId"`
	ARN     string `xml:"Arn"`
	Created string `xml:"CreateDate"`
}

// iamTag is a tag of IAM, whose names are capital.
type iamTag struct {
	Key   string `query:"Key" xml:"Key"`
	Value string `query:"Value" xml:"Value"`
}

type iamProfileXML struct {
	Path    string    `xml:"Path"`
	Name    string    `xml:"InstanceProfileName"`
	ID      string    `xml:"InstanceProfileId"`
	ARN     string    `xml:"Arn"`
	Created string    `xml:"CreateDate"`
	Roles   []roleXML `xml:"Roles>member"`
	Tags    []iamTag  `xml:"Tags>member"`
}

type iamProfileOut struct {
	Profile iamProfileXML `xml:"InstanceProfile"`
}

func (p *instanceProfile) xml(withTags bool) iamProfileXML {
	x := iamProfileXML{Path: p.path, Name: p.name, ID: "AIPA" + strings.ToUpper(sum(p.name)[:17]), ARN: p.arn(),
		Created: stamp(p.created)}
	if p.role != "" {
		arn := "arn:aws:iam::" + Account + ":role/" + p.role
		x.Roles = []roleXML{{"/", p.role, "AROA" + strings.ToUpper(sum(p.role)[:17]), arn, stamp(p.created)}}
	}
	for _, key := range slices.Sorted(maps.Keys(p.tags)) {
		if withTags {
			x.Tags = append(x.Tags, iamTag{key, p.tags[key]})
		}
	}
	return x
}

type profileIn struct {
	Name string   `query:"InstanceProfileName"`
	Path string   `query:"Path"`
	Role string   `query:"RoleName"`
	Tags []iamTag `query:"Tags.member"`
}

func (in *profileIn) tagMap() map[string]string {
	tags := map[string]string{}
	for _, t := range in.Tags {
		tags[t.Key] = t.Value
	}
	return tags
}

// profile asks for the right to an instance profile and finds it.
func (c *call) profile(in *profileIn) (*instanceProfile, error) {
	p, exists := c.profiles[in.Name]
	ask := Ask{Action: c.name(), Resource: (&instanceProfile{name: in.Name, path: "/"}).arn(), Missing: !exists}
	if exists {
		ask.Resource, ask.ResourceTags = p.arn(), maps.Clone(p.tags)
	}
	if len(in.Tags) > 0 {
		ask.RequestTags = in.tagMap()
	}
	if err := c.authorize(ask); err != nil {
		return nil, err
	}
	if !exists {
		return nil, refuse(404, "NoSuchEntity", "Instance Profile %s cannot be found.", in.Name)
	}
	return p, nil
}

func getInstanceProfile(c *call, in *profileIn) (any, error) {
	p, err := c.profile(in)
	if err != nil {
		return nil, err
	}
	return iamProfileOut{p.xml(true)}, nil
}

func createInstanceProfile(c *call, in *profileIn) (any, error) {
	p := &instanceProfile{name: in.Name, path: in.Path, tags: in.tagMap(), created: c.now()}
	if p.path == "" {
		p.path = "/"
	}
	if err := c.authorize(Ask{Action: c.name(), Resource: p.arn(), RequestTags: in.tagMap()}); err != nil {
		return nil, err
	}
	// assumed: a new profile has its tags already; otherwise Karpenter's policy would not work for Karpenter
	if len(in.Tags) > 0 {
		if err := c.authorize(Ask{Action: "iam:TagInstanceProfile", Resource: p.arn(),
			RequestTags: in.tagMap(), ResourceTags: in.tagMap()}); err != nil {
			return nil, err
		}
	}
	if len(in.Name) == 0 || len(in.Name) > 128 {
		return nil, refuse(400, "ValidationError", "instanceProfileName has %d characters; 1 to 128 are allowed",
			len(in.Name))
	}
	if _, exists := c.profiles[in.Name]; exists {
		return nil, refuse(409, "EntityAlreadyExists", "Instance Profile %s already exists.", in.Name)
	}
	c.profiles[in.Name] = p
	return iamProfileOut{p.xml(true)}, nil
}

func addRole(c *call, in *profileIn) (any, error) {
	p, err := c.profile(in)
	if err != nil {
		return nil, err
	}
	if err := c.authorize(c.passing(in.Role)); err != nil {
		return nil, err
	}
	switch {
	case !c.roles[in.Role]:
		return nil, refuse(404, "NoSuchEntity", "The role with name %s cannot be found.", in.Role)
	case p.role != "":
		return nil, refuse(409, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.role = in.Role
	return nil, nil
}

// passing asks for the right to give a role to EC2: with a profile, and with each launch.
func (s *Server) passing(role string) Ask {
	return Ask{
		Action: "iam:PassRole", Resource: "arn:aws:iam::" + Account + ":role/" + role, Missing: !s.roles[role],
		Context: map[string]string{iampolicy.PassedToService: "ec2.amazonaws.com"},
	}
}

func removeRole(c *call, in *profileIn) (any, error) {
	p, err := c.profile(in)
	if err != nil {
		return nil, err
	}
	if p.role != in.Role {
		return nil, refuse(404, "NoSuchEntity", "Role %s is not in Instance Profile %s.", in.Role, in.Name)
	}
	p.role = ""
	return nil, nil
}

func deleteInstanceProfile(c *call, in *profileIn) (any, error) {
	p, err := c.profile(in)
	if err != nil {
		return nil, err
	}
	if p.role != "" {
		return nil, refuse(409, "DeleteConflict",
			"Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(c.profiles, p.name)
	return nil, nil
}

func tagInstanceProfile(c *call, in *profileIn) (any, error) {
	p, err := c.profile(in)
	if err != nil {
		return nil, err
	}
	maps.Copy(p.tags, in.tagMap())
	return nil, nil
}

// listInstanceProfiles lists without tags, as IAM does.
func listInstanceProfiles(c *call, in *struct {
	Prefix string `query:"PathPrefix"`
	Marker string `query:"Marker"`
	Most   *int   `query:"MaxItems"`
}) (any, error) {
	if err := c.authorize(Ask{Action: c.name(),
		Resource: "arn:aws:iam::" + Account + ":instance-profile" + in.Prefix + "*"}); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Collect(maps.Values(c.profiles)), func(p *instanceProfile) bool {
		return !strings.HasPrefix(p.path, in.Prefix)
	})
	list, next, err := page(c, list, func(p *instanceProfile) string { return p.name }, paging{in.Most, in.Marker},
		bounds{1, 100})
	out := struct {
		Profiles []iamProfileXML `xml:"InstanceProfiles>member"`
		More     bool            `xml:"IsTruncated"`
		Marker   *string         `xml:"Marker"`
	}{More: next != nil, Marker: next}
	for _, p := range list {
		out.Profiles = append(out.Profiles, p.xml(false))
	}
	return out, err
}

// id is the name of a profile, however it was given.
func (n *profileName) id() string { return cmp.Or(n.Name, n.ARN[strings.LastIndex(n.ARN, "/")+1:]) }

// hasProfile refuses a launch with a profile that does not exist, has no role, or is too new.
func (l *launch) hasProfile(of *profileName) error {
	if of == nil {
		return nil
	}
	name, field := of.Name, "name"
	if name == "" {
		name, field = of.id(), "arn"
	}
	p := l.profiles[name]
	if p != nil && p.role != "" && !l.now().Before(p.created.Add(l.faults.ProfileDelay.Duration)) {
		return nil
	}
	return refuse(400, codeBadValue,
		"Value (%s) for parameter iamInstanceProfile.%s is invalid. Invalid IAM Instance Profile %s",
		name, field, field)
}

type roleIn struct {
	Name  string `query:"RoleName"`
	Trust string `query:"AssumeRolePolicyDocument"`
}

// createRole creates a role for instance profiles. Nobody assumes it here, so its trust policy does not matter.
func createRole(c *call, in *roleIn) (any, error) {
	arn := "arn:aws:iam::" + Account + ":role/" + in.Name
	if err := c.authorize(Ask{Action: c.name(), Resource: arn}); err != nil {
		return nil, err
	}
	if c.roles[in.Name] {
		return nil, refuse(409, "EntityAlreadyExists", "Role with name %s already exists.", in.Name)
	}
	c.roles[in.Name] = true
	return struct {
		Role roleXML `xml:"Role"`
	}{roleXML{"/", in.Name, "AROA" + strings.ToUpper(sum(in.Name)[:17]), arn, stamp(c.now())}}, nil
}

func deleteRole(c *call, in *roleIn) (any, error) {
	if err := c.authorize(Ask{Action: c.name(), Resource: "arn:aws:iam::" + Account + ":role/" +
		in.Name}); err != nil {
		return nil, err
	}
	if !c.roles[in.Name] {
		return nil, refuse(404, "NoSuchEntity", "The role with name %s cannot be found.", in.Name)
	}
	for _, p := range c.profiles {
		if p.role == in.Name {
			return nil, refuse(409, "DeleteConflict",
				"Cannot delete entity, must remove roles from instance profile first.")
		}
	}
	delete(c.roles, in.Name)
	return nil, nil
}
