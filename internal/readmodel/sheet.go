package readmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Sheet is a model in encoded form, made once for all readers.
type Sheet struct {
	version                    uint64
	totals, attention, waiting json.RawMessage
	pools, nodes               rows
}

// rows are the entries of a list by key; keys keeps their order.
type rows struct {
	keys []string
	of   map[string]json.RawMessage
}

// changes are the new and changed entries, and the keys of those that are gone.
type changes struct {
	Set  []json.RawMessage `json:"set,omitempty"`
	Gone []string          `json:"gone,omitempty"`
}

func (c changes) none() bool { return len(c.Set) == 0 && len(c.Gone) == 0 }

// Write encodes a model.
func Write(m Model) (*Sheet, error) {
	s := &Sheet{version: m.Version}
	var err error
	into := func(to *json.RawMessage, what any) {
		if err == nil {
			*to, err = json.Marshal(what)
		}
	}
	into(&s.totals, m.Totals)
	into(&s.attention, m.Attention)
	into(&s.waiting, m.Waiting)
	if err == nil {
		s.pools, err = listed(m.Pools, func(p Pool) string { return p.Name })
	}
	if err == nil {
		s.nodes, err = listed(m.Nodes, func(n Node) string { return n.ID })
	}
	if err != nil {
		return nil, fmt.Errorf("writing the read model: %w", err)
	}
	return s, nil
}

func listed[T any](list []T, key func(T) string) (rows, error) {
	r := rows{keys: make([]string, 0, len(list)), of: make(map[string]json.RawMessage, len(list))}
	for _, row := range list {
		data, err := json.Marshal(row)
		if err != nil {
			return r, err
		}
		if _, twice := r.of[key(row)]; !twice {
			r.keys = append(r.keys, key(row))
		}
		r.of[key(row)] = data
	}
	return r, nil
}

func (r rows) all() []json.RawMessage {
	list := make([]json.RawMessage, 0, len(r.keys))
	for _, key := range r.keys {
		list = append(list, r.of[key])
	}
	return list
}

// since returns the changes from an earlier list to this one.
func (r rows) since(before rows) changes {
	var c changes
	for _, key := range r.keys {
		if !bytes.Equal(r.of[key], before.of[key]) {
			c.Set = append(c.Set, r.of[key])
		}
	}
	for _, key := range before.keys {
		if _, still := r.of[key]; !still {
			c.Gone = append(c.Gone, key)
		}
	}
	return c
}

// Snapshot returns the whole model, with the ID by which a reader resumes.
func (s *Sheet) Snapshot(id string) ([]byte, error) {
	return json.Marshal(struct {
		APIVersion string            `json:"apiVersion"`
		ID         string            `json:"id"`
		Version    uint64            `json:"version"`
		Totals     json.RawMessage   `json:"totals"`
		Attention  json.RawMessage   `json:"attention"`
		Pools      []json.RawMessage `json:"pools"`
		Nodes      []json.RawMessage `json:"nodes"`
		Waiting    json.RawMessage   `json:"waiting"`
	}{APIVersion, id, s.version, s.totals, s.attention, s.pools.all(), s.nodes.all(), s.waiting})
}

// Delta returns the changes since an earlier sheet; short lists are repeated as a whole. different is false when
// readers would see no change.
func (s *Sheet) Delta(before *Sheet, from, id string) (data []byte, different bool, err error) {
	d := struct {
		From      string          `json:"from"`
		ID        string          `json:"id"`
		Version   uint64          `json:"version"`
		Totals    json.RawMessage `json:"totals,omitempty"`
		Attention json.RawMessage `json:"attention,omitempty"`
		Waiting   json.RawMessage `json:"waiting,omitempty"`
		Pools     *changes        `json:"pools,omitempty"`
		Nodes     *changes        `json:"nodes,omitempty"`
	}{From: from, ID: id, Version: s.version}
	if !bytes.Equal(s.totals, before.totals) {
		d.Totals, different = s.totals, true
	}
	if !bytes.Equal(s.attention, before.attention) {
		d.Attention, different = s.attention, true
	}
	if !bytes.Equal(s.waiting, before.waiting) {
		d.Waiting, different = s.waiting, true
	}
	if c := s.pools.since(before.pools); !c.none() {
		d.Pools, different = &c, true
	}
	if c := s.nodes.since(before.nodes); !c.none() {
		d.Nodes, different = &c, true
	}
	if !different {
		return nil, false, nil
	}
	data, err = json.Marshal(d)
	return data, true, err
}
