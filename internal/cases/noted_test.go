package cases

import (
	"context"
	"fmt"
	"strings"
)

// noted are checks of what cases say in their notes, by case.
var noted = map[string][]func(context.Context, *play, *view) error{
	"001": {deliveries(3)},
	"073": {kept("e2")}, // not a mark and e2
	"089": {challengeIsText},
	"104": {deadAfter(5)},
	"106": {bothRows},
	"110": {deliveries(3)},
}

func deliveries(want int64) func(context.Context, *play, *view) error {
	return func(_ context.Context, p *play, v *view) error {
		n := int64(0)
		for _, e := range v.events {
			n += 1 + e.Repeats
		}
		if n != want {
			return fmt.Errorf("%d deliveries are noted, want %d", n, want)
		}
		return nil
	}
}

func kept(key string) func(context.Context, *play, *view) error {
	return func(_ context.Context, _ *play, v *view) error {
		for _, e := range v.events {
			if e.Key == key {
				return nil
			}
		}
		return fmt.Errorf("no event has the key %s", key)
	}
}

func challengeIsText(_ context.Context, p *play, _ *view) error {
	for _, a := range p.answers {
		if a.status != 200 {
			continue
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") || string(a.body) != "<b>123" {
			return fmt.Errorf("the challenge was answered %q, %v", a.body, a.header)
		}
		return nil
	}
	return fmt.Errorf("no challenge was answered")
}

func deadAfter(attempts int) func(context.Context, *play, *view) error {
	return func(_ context.Context, _ *play, v *view) error {
		for _, j := range v.jobs {
			if j.Dead && j.Attempts != attempts {
				return fmt.Errorf("a job was dead after %d attempts, want %d", j.Attempts, attempts)
			}
		}
		return nil
	}
}

func bothRows(_ context.Context, _ *play, v *view) error {
	if len(v.find("payment/ch_1")) != 1 || len(v.find("invoice/in_1")) != 1 {
		return fmt.Errorf("%d rows, want the charge's and the invoice's", len(v.rows))
	}
	return nil
}
