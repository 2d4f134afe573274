package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// env gives the names in expressions their values, for one item of a delivery. It
// is used by one goroutine.
type env struct {
	d     *delivery
	body  tree.Value
	known bool // body is set
	item  *item
	typ   string

	element tree.Value // what the name of each stands for
	each    string

	digest [sha256.Size]byte
	hashed bool

	compared []comparedValue

	lets  []letValue
	fault error // of a name under let, since Lookup cannot fail
	// volatile says that the request changes while it is read, as when it is being
	// signed, so that nothing is remembered.
	volatile bool

	memory expr.Memory
}

type letValue struct {
	value tree.Value
	err   error
	done  bool
}

// env returns the names for the delivery as a whole.
func (d *delivery) env() *env { return &env{d: d} }

func (e *env) setItem(it item) { e.item = &it }

// Lookup implements [expr.Input].
func (e *env) Lookup(name string) tree.Value {
	switch name {
	case "body":
		return e.root()
	case "item":
		if e.item == nil {
			return e.root()
		}
		return e.item.value
	case "type":
		if e.typ == "" {
			return tree.Value{}
		}
		return tree.StringOf(e.typ)
	case "headers":
		return tree.LookupOf(e.header)
	case "query":
		return tree.LookupOf(e.queryValue)
	case "params":
		return tree.LookupOf(e.param)
	case "raw":
		return tree.StringOf(string(e.d.r.Raw))
	case "digest":
		sum := e.sum()
		return tree.StringOf(hex.EncodeToString(sum[:]))
	case "method":
		return tree.StringOf(e.d.r.Method)
	case "url":
		return tree.StringOf(e.d.r.URL)
	case "path":
		return tree.StringOf(pathOf(e.d.r.URL))
	}
	if e.each != "" && name == e.each {
		return e.element
	}
	if i, is := e.d.p.letIndex[name]; is {
		return e.let(i)
	}
	return tree.Value{}
}

func (e *env) root() tree.Value {
	if !e.known {
		e.body, e.known = e.d.content().root, true
	}
	return e.body
}

func (e *env) header(name string) tree.Value {
	return firstOf(e.d.r.Header[http.CanonicalHeaderKey(name)])
}

func (e *env) queryValue(name string) tree.Value { return firstOf(e.d.r.Query[name]) }

func (e *env) param(name string) tree.Value {
	value, given := e.d.p.values[name]
	if !given {
		return tree.Value{}
	}
	return tree.StringOf(value)
}

func firstOf(values []string) tree.Value {
	if len(values) == 0 {
		return tree.Value{}
	}
	return tree.StringOf(values[0])
}

// let evaluates a name under let when it is first used. No let reads itself,
// which was checked when the file was compiled.
func (e *env) let(i int) tree.Value {
	if e.lets == nil {
		e.lets = make([]letValue, len(e.d.p.lets))
	}
	l := &e.lets[i]
	if !l.done || e.volatile {
		before := e.fault
		l.value, l.err = e.eval(e.d.p.lets[i])
		l.done, e.fault = true, before
	}
	if l.err != nil {
		e.fault = l.err
	}
	return l.value
}

// sum returns the SHA-256 of the item's bytes.
func (e *env) sum() [sha256.Size]byte {
	if !e.hashed {
		bytes := e.d.r.Raw
		if e.item != nil {
			bytes = e.item.bytes
		}
		e.digest, e.hashed = sha256.Sum256(bytes), true
	}
	return e.digest
}

func digestText(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// eval evaluates an expression; nil gives what is missing.
func (e *env) eval(prog *expr.Program) (tree.Value, error) {
	if prog == nil {
		return tree.Value{}, nil
	}
	e.fault = nil
	v, err := prog.EvalIn(&e.memory, e)
	if err == nil {
		err = e.fault
	}
	return v, err
}

// holds evaluates a condition; nil holds.
func (e *env) holds(prog *expr.Program) (bool, error) {
	if prog == nil {
		return true, nil
	}
	e.fault = nil
	ok, err := prog.TrueIn(&e.memory, e)
	if err == nil {
		err = e.fault
	}
	return ok, err
}
