package ec2test

import (
	"slices"
	"strings"
)

// ssmActions are those of the parameter store, as far as public parameters need.
func ssmActions(p protocol) map[string]action {
	return map[string]action{
		"GetParameter":        typed(p, getParameter),
		"GetParameters":       typed(p, getParameters),
		"GetParametersByPath": typed(p, getParametersByPath),
	}
}

// SetParameter sets a parameter, such as that of a recommended image.
func (s *Server) SetParameter(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ssm[name] = value
}

// DeleteParameter deletes a parameter.
func (s *Server) DeleteParameter(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ssm, name)
}

type parameterJSON struct {
	Name, Type, Value, ARN, DataType string
	Version                          int
}

func (s *Server) ssmARN(name string) string {
	account := Account
	if strings.HasPrefix(name, "/aws/service/") {
		account = ""
	}
	return "arn:aws:ssm:" + s.region + ":" + account + ":parameter/" + strings.TrimPrefix(name, "/")
}

func (s *Server) shown(name string) parameterJSON {
	return parameterJSON{Name: name, Type: "String", Value: s.ssm[name], ARN: s.ssmARN(name), DataType: "text",
		Version: 1}
}

func getParameter(c *call, in *struct {
	Name           string
	WithDecryption bool
}) (any, error) {
	if err := c.authorize(Ask{Action: c.name(), Resource: c.ssmARN(in.Name)}); err != nil {
		return nil, err
	}
	if _, exists := c.ssm[in.Name]; !exists {
		return nil, refuse(400, "ParameterNotFound", "%s", in.Name)
	}
	return map[string]parameterJSON{"Parameter": c.shown(in.Name)}, nil
}

func getParameters(c *call, in *struct {
	Names          []string
	WithDecryption bool
}) (any, error) {
	const most = 10
	if len(in.Names) == 0 || len(in.Names) > most {
		return nil, refuse(400, "ValidationException", "Names has %d members; 1 to %d are allowed", len(in.Names),
			most)
	}
	out := struct {
		Parameters        []parameterJSON
		InvalidParameters []string
	}{Parameters: []parameterJSON{}, InvalidParameters: []string{}}
	for _, name := range in.Names {
		if err := c.authorize(Ask{Action: c.name(), Resource: c.ssmARN(name)}); err != nil {
			return nil, err
		}
		if _, exists := c.ssm[name]; exists {
			out.Parameters = append(out.Parameters, c.shown(name))
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}

func getParametersByPath(c *call, in *struct {
	Path           string
	Recursive      bool
	WithDecryption bool
	MaxResults     *int
	NextToken      string
}) (any, error) {
	if err := c.authorize(Ask{Action: c.name(), Resource: c.ssmARN(in.Path)}); err != nil {
		return nil, err
	}
	var names []string
	for name := range c.ssm {
		rest, below := strings.CutPrefix(name, strings.TrimSuffix(in.Path, "/")+"/")
		if below && (in.Recursive || !strings.Contains(rest, "/")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names, next, err := page(c, names, func(name string) string { return name }, paging{in.MaxResults, in.NextToken},
		bounds{1, 10})
	out := struct {
		Parameters []parameterJSON
		NextToken  *string `json:",omitempty"`
	}{[]parameterJSON{}, next}
	for _, name := range names {
		out.Parameters = append(out.Parameters, c.shown(name))
	}
	return out, err
}
