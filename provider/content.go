package provider

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/onceward/onceward/provider/internal/tree"
	"github.com/onceward/onceward/provider/internal/verify"
)

const (
	// maxEvents bounds the items of one delivery, maxElements those of an each.
	maxEvents   = 10_000
	maxElements = 1_000
)

// content is a parsed body, or why it could not be read. The reason holds nothing
// of the body.
type content struct {
	root    tree.Value
	doubled []string
	reason  string
}

// content parses the body once.
func (d *delivery) content() *content {
	if !d.parsed {
		d.body = readContent(d.r.Header, d.r.Raw, d.p.unwrap)
		d.parsed = true
	}
	return &d.body
}

// readContent parses a body by what it looks like: JSON, or a form where the
// Content-Type says so and the body does not begin like JSON. Nothing at all is
// null: senders exist that say all in the query.
func readContent(header http.Header, raw []byte, unwrap string) content {
	text, err := verify.Decode(header, raw)
	if err != nil {
		if rejected, ok := errors.AsType[*Rejected](err); ok {
			return content{reason: rejected.Detail}
		}
		return content{reason: err.Error()}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	if len(trimmed) == 0 {
		return content{}
	}
	if trimmed[0] == '{' || trimmed[0] == '[' || !isForm(header) {
		doc, err := tree.Parse(text)
		if err == nil {
			return content{root: doc.Root, doubled: doc.Doubled}
		}
		if !isForm(header) {
			return content{reason: fmt.Sprintf("the body is not JSON: %v", err)}
		}
	}
	doc, err := tree.ParseForm(text)
	if err != nil {
		return content{reason: fmt.Sprintf("the body is not a form: %v", err)}
	}
	if unwrap != "" {
		if inner, ok := doc.Root.Get(unwrap).Text(); ok {
			if doc, err = tree.ParseText(inner); err != nil {
				return content{reason: fmt.Sprintf("the field %s of the form is not JSON: %v", unwrap, err)}
			}
		}
	}
	return content{root: doc.Root, doubled: doc.Doubled}
}

func isForm(header http.Header) bool {
	media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded")
}

// item is one element of a split body, or the body.
type item struct {
	value tree.Value
	bytes []byte
}

// items splits the body; without split, or if it gives none, the body is the one
// item. The reason says why it could not be split; the body is the item then too.
func (d *delivery) items() (items []item, reason string) {
	body := d.content()
	whole := []item{{body.root, d.r.Raw}}
	if d.p.split == nil || body.reason != "" {
		return whole, body.reason
	}
	list, err := d.env().eval(d.p.split)
	switch {
	case err != nil:
		return whole, fmt.Sprintf("split cannot be computed: %v", err)
	case list.IsNull():
		return whole, ""
	case list.Kind() != tree.List:
		return whole, "split gives no list"
	case list.Len() > maxEvents:
		return whole, fmt.Sprintf("the delivery holds %d events; at most %d are read", list.Len(), maxEvents)
	}
	for v := range list.Elements() {
		text := v.Raw()
		if text == nil {
			text = v.AppendJSON(nil)
		}
		items = append(items, item{v, text})
	}
	if len(items) == 0 {
		return whole, ""
	}
	return items, ""
}
