package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errAnswer says that what came is no answer that the load generator reads: it
// wants a length and no more bytes than that.
var errAnswer = errors.New("the answer is not of the form that the load generator reads")

// readAnswer reads one HTTP answer with the help of buf and returns its status. It
// parses no more than that: the generator shares the machine with the server.
func readAnswer(r io.Reader, buf []byte) (status int, err error) {
	have, need := 0, -1
	for have != need {
		if have == len(buf) {
			return 0, fmt.Errorf("%w: it is longer than %d bytes", errAnswer, len(buf))
		}
		n, err := r.Read(buf[have:])
		have += n
		if err != nil && have != need {
			return 0, fmt.Errorf("read an answer: %w", err)
		}
		if need < 0 {
			head := bytes.Index(buf[:have], []byte("\r\n\r\n"))
			if head < 0 {
				continue
			}
			length, err := contentLength(buf[:head+2])
			if err != nil {
				return 0, err
			}
			need = head + 4 + length
			if status, err = statusOf(buf[:head]); err != nil {
				return 0, err
			}
		}
		if have > need {
			return 0, fmt.Errorf("%w: there is more than one", errAnswer)
		}
	}
	return status, nil
}

// statusOf returns the status of an answer that begins with HTTP/1.1 200.
func statusOf(head []byte) (int, error) {
	const before = "HTTP/1.1 "
	if len(head) < len(before)+3 || string(head[:len(before)]) != before {
		return 0, errAnswer
	}
	return number(head[len(before) : len(before)+3])
}

// contentLength returns the length that a head with its last line's end tells.
func contentLength(head []byte) (int, error) {
	const name = "\r\nContent-Length: "
	_, value, found := bytes.Cut(head, []byte(name))
	if !found {
		return 0, fmt.Errorf("%w: it has no Content-Length", errAnswer)
	}
	return number(value[:bytes.IndexByte(value, '\r')])
}

func number(text []byte) (int, error) {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<20 {
			return 0, fmt.Errorf("%w: %q is no number", errAnswer, text)
		}
		n = 10*n + int(c-'0')
	}
	if len(text) == 0 {
		return 0, fmt.Errorf("%w: a number is missing", errAnswer)
	}
	return n, nil
}
