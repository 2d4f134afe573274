package inbox

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// smallBody is up to which length the memory for a body is made before it comes, and
// taken from nowhere: about what a connection itself takes.
const smallBody = 4 << 10

var (
	errTooLarge = errors.New("the body is larger than the limit")
	errCutOff   = errors.New("the body was cut off")
	errNoRoom   = errors.New("too many large bodies are under way")
)

// bodies bounds the memory of the bodies that are under way, together: what their
// senders have said so far, and not what they have promised. Anybody may send, for
// nothing is verified before it is whole.
type bodies struct {
	free atomic.Int64 // bytes
}

// take takes room for so many bytes, if there is any.
func (b *bodies) take(n int64) bool {
	if b.free.Add(-n) >= 0 {
		return true
	}
	b.free.Add(n)
	return false
}

// give gives room back.
func (b *bodies) give(n int64) {
	if n > 0 {
		b.free.Add(n)
	}
}

// read reads the whole body, or says errTooLarge, errCutOff or errNoRoom. held is
// what is to be given back when the body is of no use any more, in each case.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, held int64, err error) {
	if r.ContentLength > limit {
		return nil, 0, errTooLarge
	}
	limited := http.MaxBytesReader(w, r.Body, limit)
	most := limit + 1 // one more byte than there may be shows that it ends
	if r.ContentLength >= 0 {
		most = r.ContentLength
	}
	buf := make([]byte, min(most, smallBody))
	n := 0
	for int64(n) < most {
		if n == len(buf) { // what came has earned as much again
			size := min(2*int64(len(buf)), most)
			if !b.take(size) {
				return nil, held, errNoRoom
			}
			grown := make([]byte, size)
			copy(grown, buf)
			b.give(held)
			buf, held = grown, size
		}
		m, err := limited.Read(buf[n:])
		n += m
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && (r.ContentLength < 0 || int64(n) == most):
			return buf[:n], held, nil
		default:
			return nil, held, readError(err)
		}
	}
	return buf, held, nil
}

// readError translates what reading a body says.
func readError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return errTooLarge
	}
	return fmt.Errorf("%w: %w", errCutOff, err)
}
