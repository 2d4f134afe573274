package provider

import (
	"slices"
	"strings"

	"github.com/onceward/onceward/provider/internal/expr"
)

// eventSpec is a compiled `event`. It is immutable.
type eventSpec struct {
	key     keySpec // no parts: the digest
	typ     *expr.Program
	time    *expr.Program
	account *expr.Program
	mode    *expr.Program
	was     *wasSpec

	// keyPaths are the members that the key and the scope depend on, typePaths those
	// of the type.
	keyPaths  []memberPath
	typePaths []memberPath
}

// certain reports whether the key and the scope are what the sender meant: they
// depend on no doubled member, and on no body that could not be read.
func (ev *eventSpec) certain(unreadable bool, doubled []string) bool {
	return !(unreadable && len(ev.keyPaths) > 0) && !touched(ev.keyPaths, doubled)
}

// wasSpec says where the sender tells former values, and of what.
type wasSpec struct {
	path   []string // of members below the item
	values *expr.Program
}

// memberPath is a place in the body or, if item is set, in the item.
type memberPath struct {
	item bool
	path string // parts joined by points, as tree.Document names doubled members
}

// compileType compiles event.type, which others may read by the name type.
func (c *compiler) compileType(event *node) {
	n := event.get("type")
	if n == nil {
		return
	}
	prog := c.expression(n, c.names)
	if way := c.reaches(prog, "type"); way != nil {
		c.ps.add(n.at, "type is defined by itself: type -> %s", strings.Join(way, " -> "))
		return
	}
	c.typeProg = prog
	c.p.event.typ = prog
}

func (c *compiler) compileEvent(n *node) {
	if n == nil {
		return
	}
	if !c.isMap(n, "event", "key, type, time, scope and was") {
		return
	}
	c.known(n, "event", "key", "type", "time", "scope", "was")
	ev := &c.p.event
	if key := n.get("key"); key != nil {
		ev.key = c.key(key, c.names)
	}
	if t := n.get("time"); t != nil {
		ev.time, c.timeNode = c.expression(t, c.names), t
	}
	if scope := n.get("scope"); scope != nil && c.isMap(scope, "event.scope", "account and mode") {
		c.known(scope, "event.scope", "account", "mode")
		if account := scope.get("account"); account != nil {
			ev.account = c.expression(account, c.names)
		}
		if mode := scope.get("mode"); mode != nil {
			ev.mode = c.expression(mode, c.names)
		}
	}
	if was := n.get("was"); was != nil {
		c.compileWas(was)
	}
	for _, prog := range append(slices.Clip(ev.key.parts), ev.account, ev.mode) {
		ev.keyPaths = append(ev.keyPaths, c.memberPaths(prog)...)
	}
	ev.typePaths = c.memberPaths(ev.typ)
}

func (c *compiler) compileWas(n *node) {
	if !c.isMap(n, "event.was", "at and values") {
		return
	}
	c.known(n, "event.was", "at", "values")
	at, values := n.get("at"), n.get("values")
	if at == nil || values == nil {
		c.ps.add(n.at, "was needs at and values, as {at: body.data.object, values: body.data.previous_attributes}")
		return
	}
	prog, was := c.expression(at, c.names), &wasSpec{values: c.expression(values, c.names)}
	if prog == nil || was.values == nil {
		return
	}
	path, plain := c.plainPath(prog)
	base := "body"
	if c.p.split != nil {
		base = "item"
	}
	switch {
	case !plain:
		c.ps.add(at.at, "at is a path of members, as body.data.object; former values are laid over what stands there")
	case path[0] != base && (path[0] != "item" || base != "body"):
		c.ps.add(at.at, "at begins with %s here, since that is what the rules read", base)
	default:
		was.path = path[1:]
		c.p.event.was = was
	}
}

// memberPaths lists the members that an expression depends on, by way of let and
// type. What is read of something computed counts as all that it was computed of.
func (c *compiler) memberPaths(prog *expr.Program) []memberPath {
	seen := map[string]bool{}
	var paths []memberPath
	var walk func(prog *expr.Program)
	walk = func(prog *expr.Program) {
		if prog == nil {
			return
		}
		for _, read := range prog.Reads() {
			parts, name := read.Parts, read.Parts[0]
			l := c.lets[name]
			if l != nil {
				if head, plain := c.plainPath(l.prog); plain {
					parts, name = slices.Concat(head, parts[1:]), head[0]
					l = nil
				}
			}
			switch {
			case name == "body" || name == "item":
				p := memberPath{name == "item", strings.Join(parts[1:], ".")}
				if !slices.Contains(paths, p) {
					paths = append(paths, p)
				}
			case seen[name]:
			case l != nil:
				seen[name] = true
				walk(l.prog)
			case name == "type":
				seen[name] = true
				walk(c.typeProg)
			}
		}
	}
	walk(prog)
	return paths
}

// touches reports whether a doubled member is on a path, above or below it.
func (m memberPath) touches(doubled string) bool {
	return doubled == "" || m.path == "" || m.path == doubled ||
		strings.HasPrefix(m.path, doubled+".") || strings.HasPrefix(doubled, m.path+".")
}

// compileSplit compiles unwrap and split, which are done before there is an item.
func (c *compiler) compileSplit() {
	if n := c.root.get("unwrap"); n != nil {
		if name, ok := c.text(n, "unwrap"); ok && name != "" {
			c.p.unwrap = name
		} else if ok {
			c.ps.add(n.at, "unwrap is the name of the form's field that holds JSON, as payload")
		}
	}
	n := c.root.get("split")
	if n == nil {
		return
	}
	prog := c.expression(n, c.names)
	if way := c.reaches(prog, "item", "type", "digest"); way != nil {
		c.ps.add(n.at, "split makes the items, so it cannot read %s; begin with body", strings.Join(way, " -> "))
		return
	}
	c.p.split = prog
}
