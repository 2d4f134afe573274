package expr

import (
	"strings"
	"time"
	_ "time/tzdata" // zones are named in provider files, which must mean the same on every machine

	"github.com/onceward/onceward/provider/internal/tree"
)

// firstYear and lastYear bound an instant: what 64 bits of nanoseconds hold.
const (
	firstYear = 1678
	lastYear  = 2261
)

// Instant reads v as time(x) does: an instant stays; a text is RFC 3339, with or without a fraction of a second; a number,
// or a text that writes one, is Unix time. Of seconds, milliseconds and microseconds it is the first as which the number
// lies in the years 1678 to 2261: seconds up to 9.2 thousand million, microseconds from 9.2 million million. The ok of null
// is false. What cannot be read, or lies outside those years, is an *Error.
func Instant(v tree.Value) (at time.Time, ok bool, err error) {
	switch v.Kind() {
	case tree.Missing, tree.Null:
		return time.Time{}, false, nil
	case tree.Time:
		at, _ = v.Time()
	case tree.Number:
		text, _ := v.NumberText()
		at, err = unixTime(text)
	case tree.String:
		text, _ := v.Text()
		at, err = textTime(text)
	default:
		err = fault("an instant cannot be read from "+describe(v), "")
	}
	if err != nil {
		return time.Time{}, false, err
	}
	return inYears(at)
}

// inYears checks that at is within the years an instant may have.
func inYears(at time.Time) (time.Time, bool, error) {
	at = at.UTC()
	if y := at.Year(); y < firstYear || y > lastYear {
		return time.Time{}, false, fault("the instant is outside the years 1678 to 2261", "")
	}
	return at, true, nil
}

// textTime reads RFC 3339, or a number written as a text.
func textTime(text string) (time.Time, error) {
	if _, how := tree.Scaled(text, 0); how != tree.NotNumber {
		return unixTime(text)
	}
	if at, ok := rfc3339(text); ok {
		return at, nil
	}
	hint := "it reads RFC 3339 and Unix time; time(x, layout, zone) reads other texts"
	return time.Time{}, fault("the text is not an instant", hint)
}

// rfc3339 reads RFC 3339, whose letters may be small.
func rfc3339(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	return at, err == nil
}

// unixTime reads a number of seconds, milliseconds or microseconds since 1970.
func unixTime(text string) (time.Time, error) {
	for _, places := range []int{9, 6, 3} {
		ns, how := tree.Scaled(text, places)
		switch how {
		case tree.Exact:
			if at := time.Unix(0, ns); at.UTC().Year() >= firstYear && at.UTC().Year() <= lastYear {
				return at, nil
			}
		case tree.Inexact:
			return time.Time{}, fault("the Unix time is finer than a nanosecond", "")
		}
	}
	return time.Time{}, fault("the Unix time is outside the years 1678 to 2261, in seconds, milliseconds and microseconds", "")
}

// instant is time(x) and time(x, layout, zone).
func instant(_ *frame, args []tree.Value) (tree.Value, error) {
	if len(args) == 1 {
		return instantValue(Instant(args[0]))
	}
	layout, name, err := twoTexts(args[1:])
	if err != nil {
		return tree.Value{}, err
	}
	zone, err := zoneOf(name)
	if err != nil {
		return tree.Value{}, err
	}
	if err := checkLayout(layout); err != nil {
		return tree.Value{}, err
	}
	return instantValue(layoutTime(args[0], layout, zone))
}

func instantValue(at time.Time, ok bool, err error) (tree.Value, error) {
	if err != nil || !ok {
		return tree.NullValue(), err
	}
	return tree.TimeOf(at), nil
}

// prepareInstant checks a literal layout and loads a literal zone once.
func prepareInstant(args []*tree.Value) (impl, error) {
	if len(args) != 3 || !isText(args[1]) || !isText(args[2]) {
		return instant, nil
	}
	layout, _ := args[1].Text()
	if err := checkLayout(layout); err != nil {
		return nil, err
	}
	name, _ := args[2].Text()
	zone, err := zoneOf(name)
	if err != nil {
		return nil, err
	}
	return func(_ *frame, args []tree.Value) (tree.Value, error) {
		return instantValue(layoutTime(args[0], layout, zone))
	}, nil
}

// isText reports whether v is there and a String.
func isText(v *tree.Value) bool { return v != nil && v.Kind() == tree.String }

// zoneOf returns an IANA zone.
func zoneOf(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if name == "" || name == "Local" || err != nil {
		return nil, fault("there is no such time zone", "zones are written like America/Sao_Paulo or UTC")
	}
	return zone, nil
}

// checkLayout refuses what is no Go layout: it must stand for more than its own letters.
func checkLayout(layout string) error {
	early := time.Date(2017, 11, 28, 21, 47, 58, 987654321, time.UTC)
	if early.Format(layout) != layout {
		return nil
	}
	return fault("the layout has no part of a time", "a Go layout writes this moment: 2006-01-02 15:04:05.999")
}

// layoutTime reads a text of this layout, in the zone if it has none of its own. A text that does not fit may be RFC 3339,
// and a number Unix time: senders mix them.
func layoutTime(v tree.Value, layout string, zone *time.Location) (time.Time, bool, error) {
	if v.Kind() != tree.String && v.Kind() != tree.Number {
		return Instant(v)
	}
	text, _ := v.Text()
	at, err := time.ParseInLocation(layout, text, zone)
	switch {
	case err == nil && madeUp(at, zone):
		return time.Time{}, false, fault("the text has a zone by a name that is not known there", "an offset like -03:00 is certain")
	case err == nil:
		return inYears(at)
	case v.Kind() == tree.Number:
		return Instant(v)
	}
	if at, ok := rfc3339(text); ok {
		return inYears(at)
	}
	return time.Time{}, false, fault("the text does not fit the layout", "")
}

// madeUp reports whether at has a zone that was given by a name unknown in zone, which package time takes for UTC.
func madeUp(at time.Time, zone *time.Location) bool {
	name, offset := at.Zone()
	return offset == 0 && at.Location() != zone && at.Location() != time.UTC && name != "" && name != "UTC" && name != "GMT"
}
