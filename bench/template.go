package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/onceward/onceward/provider"
)

const (
	// bodySize is the length of every body.
	bodySize = 1024
	// idLength is the length of what stands behind the prefix of an id.
	idLength = 24
)

// blank is a place in a template that is filled in for each event.
type blank uint8

const (
	eventID   blank = iota
	entityID        // what the event is about
	chargeID        // of the same entity
	createdAt       // when the sender made it
	filler          // so that the body has its size
)

// template is a sample of the catalogue with blanks. It is immutable.
type template struct {
	texts  [][]byte // around the blanks: one more than there are
	blanks []blank
	fill   int // the length of the filler
}

// newTemplate makes a template of a sample. The ids in names are about the one
// entity and get its id.
func newTemplate(s provider.Sample, names map[string]blank) (*template, error) {
	var head struct {
		ID      string `json:"id"`
		Created int64  `json:"created"`
	}
	if err := json.Unmarshal(s.Body, &head); err != nil {
		return nil, fmt.Errorf("sample %s: %w", s.Name, err)
	}
	replace := map[string]blank{strings.TrimPrefix(head.ID, "evt_"): eventID}
	for name, b := range names {
		_, rest, _ := strings.Cut(name, "_")
		replace[rest] = b
	}
	const object = `"object": {`
	text := strings.Replace(string(s.Body), object, object+"\n      \"description\": \"\x00\",", 1)
	replace["\x00"] = filler
	t := &template{}
	t.split(text, replace, strconv.FormatInt(head.Created, 10))
	t.fill = bodySize - t.size()
	if t.fill < 0 || !bytes.Contains(s.Body, []byte(object)) || t.count(eventID) != 1 || t.count(createdAt) != 1 || t.count(entityID) == 0 {
		return nil, fmt.Errorf("sample %s is not of the form that the benchmark fills in", s.Name)
	}
	return t, nil
}

// split cuts the text at everything that is replaced: the names, and the first
// number that is when the event was made.
func (t *template) split(text string, replace map[string]blank, created string) {
	for dated := false; ; {
		at, length, what := len(text), 0, filler
		for name, b := range replace {
			if i := strings.Index(text, name); i >= 0 && i < at {
				at, length, what = i, len(name), b
			}
		}
		if i := strings.Index(text, created); !dated && i >= 0 && i < at {
			at, length, what = i, len(created), createdAt
		}
		t.texts = append(t.texts, []byte(text[:at]))
		if at == len(text) {
			return
		}
		dated = dated || what == createdAt
		t.blanks = append(t.blanks, what)
		text = text[at+length:]
	}
}

func (t *template) count(what blank) int {
	n := 0
	for _, b := range t.blanks {
		if b == what {
			n++
		}
	}
	return n
}

// size is the length of a body without its filler.
func (t *template) size() int {
	n := 0
	for _, text := range t.texts {
		n += len(text)
	}
	return n + idLength*(len(t.blanks)-t.count(filler)-t.count(createdAt)) + len(clockStart)
}

// append appends the body of one event.
func (t *template) append(dst []byte, e event, noise []byte) []byte {
	for i, what := range t.blanks {
		dst = append(dst, t.texts[i]...)
		switch what {
		case eventID:
			dst = e.id.append(dst)
		case entityID, chargeID:
			dst = e.entity.append(dst)
		case createdAt:
			dst = strconv.AppendInt(dst, e.created, 10)
		case filler:
			from := int(e.id.low % uint64(len(noise)-bodySize))
			dst = append(dst, noise[from:from+t.fill]...)
		}
	}
	return append(dst, t.texts[len(t.blanks)]...)
}

// event is what differs from one event to the next of a template.
type event struct {
	id, entity id
	created    int64 // Unix seconds
}

// id is what stands behind the prefix of an id.
type id struct{ high, low uint64 }

// append appends the id: idLength characters, sorted as high is and then low.
func (i id) append(dst []byte) []byte {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for _, n := range []uint64{i.high, i.low} {
		var text [idLength / 2]byte // 62 to the power of 11 is more than 2 to the power of 64
		for at := len(text) - 1; at >= 0; at-- {
			text[at] = digits[n%62]
			n /= 62
		}
		dst = append(dst, text[:]...)
	}
	return dst
}

// newNoise returns letters to fill bodies with, which do not compress well.
func newNoise(from *rand.Rand) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789."
	noise := make([]byte, 1<<16)
	for i := range noise {
		noise[i] = letters[from.IntN(len(letters))]
	}
	return noise
}
