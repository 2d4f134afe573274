package provider

import (
	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// former returns the names as they were before the event, by what the sender
// tells of former values; nil if it tells none.
func (e *env) former() *env {
	was := e.d.p.event.was
	values, err := e.eval(was.values)
	if err != nil || values.Kind() != tree.Object || values.Len() == 0 {
		return nil // not told, or nothing changed
	}
	base := e.Lookup("item")
	at := base
	for _, name := range was.path {
		at = at.Get(name)
	}
	over, ok := tree.Put(base, was.path, tree.Overlay(at, values))
	if !ok {
		return nil
	}
	f := *e
	f.lets, f.compared, f.fault, f.memory = nil, nil, nil, expr.Memory{}
	if e.item == nil {
		f.body, f.known = over, true
	} else {
		f.item = &item{over, e.item.bytes}
	}
	return &f
}

// addFormer reads the rule a second time, with the names as they were, and adds
// to each fact the former values of what it tells, where they differ.
func (x *extraction) addFormer(former *env, facts []onceward.Fact) {
	if former == nil {
		return
	}
	y := extraction{env: former, rule: x.rule, ev: x.ev}
	var list tree.Value
	if y.rule.eachOf != nil {
		var err error
		if list, err = y.eval(y.rule.eachOf); err != nil || list.Kind() != tree.List {
			return
		}
		y.each = y.rule.each
		defer func() { y.each = "" }()
	}
	for i := range facts {
		if facts[i].Held != "" {
			continue
		}
		if x.elements[i] >= 0 {
			y.element = list.Index(x.elements[i])
		}
		y.addTo(&facts[i])
	}
}

// addTo adds the former values of one fact. What cannot be computed of them is
// not told, and so is all if the rule would have named another entity.
func (x *extraction) addTo(f *onceward.Fact) {
	if ok, err := x.applies(); err != nil || !ok {
		return
	}
	if key, err := x.entityKey(x.rule.key); err != nil || key != f.Key {
		return
	}
	if status, err := x.status(x.rule.status); err == nil && status != "" && f.Status != "" && status != f.Status {
		f.Was = append(f.Was, onceward.Part{Field: onceward.StatusPart, Value: onceward.String(status)})
	}
	for i := range x.rule.fields {
		spec := &x.rule.fields[i]
		if spec.mode == onceward.Max {
			continue // the greatest stands, whatever was replaced
		}
		for _, now := range f.Fields {
			if now.Field != spec.name {
				continue
			}
			was, told, err := x.field(spec)
			if err == nil && told && was.By == now.By && !was.Value.Equal(now.Value) {
				f.Was = append(f.Was, was)
			}
		}
	}
}
