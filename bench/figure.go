package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// figure is something that has a goal, or that is to be reported beside those.
type figure struct {
	Name string `json:"name"`
	// Of is the variant or the store that it is about.
	Of    string  `json:"of"`
	Value float64 `json:"value"`
	// Min and Max are of single repetitions.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Goal is what Value should reach, 0 if it is only reported; Aim is what would
	// be better. Less says that it should stay at or below Goal.
	Goal float64 `json:"goal,omitempty"`
	Aim  float64 `json:"aim,omitempty"`
	Less bool    `json:"less,omitempty"`
	// Unit is how it is written: %, times, MB, ms or nothing.
	Unit  string `json:"unit,omitempty"`
	Noisy bool   `json:"noisy,omitempty"`
}

// verdict says whether the goal is met.
func (f figure) verdict() string {
	switch {
	case f.Goal == 0:
		return "reported"
	case !f.reaches(f.Goal):
		return "not met"
	case f.Aim != 0 && f.reaches(f.Aim):
		return "met, and the aim"
	default:
		return "met"
	}
}

func (f figure) reaches(goal float64) bool {
	if f.Less {
		return f.Value <= goal
	}
	return f.Value >= goal
}

// write writes a number in the unit of the figure.
func (f figure) write(x float64) string {
	switch f.Unit {
	case "%":
		return fmt.Sprintf("%.1f %%", 100*x)
	case "times":
		return fmt.Sprintf("%.2f ×", x)
	case "MB":
		return fmt.Sprintf("%.0f MB", x)
	case "ms":
		return fmt.Sprintf("%.2f ms", x)
	default:
		return fmt.Sprintf("%.3f", x)
	}
}

// goal writes the goal and the aim.
func (f figure) goal() string {
	if f.Goal == 0 {
		return ""
	}
	sign := "≥ "
	if f.Less {
		sign = "≤ "
	}
	text := sign + f.write(f.Goal)
	if f.Aim != 0 {
		text += ", aim " + f.write(f.Aim)
	}
	return text
}

func spreadOf(list []float64) (least, most float64) {
	if len(list) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(list), slices.Max(list)
}

// points maps repetitions to what was measured in them.
type points map[int]float64

// listed makes points of a list with one value a repetition.
func listed(list []float64) points {
	p := points{}
	for rep, x := range list {
		p[rep] = x
	}
	return p
}

func (p points) median() float64 { return median(slices.Collect(maps.Values(p))) }

// ratio fills in the quotient of two figures: of their medians, and for the spread
// of what was measured in the same repetition. It is false if one is missing.
func (f figure) ratio(of, to points) (figure, bool) {
	if len(of) == 0 || len(to) == 0 {
		return f, false
	}
	f.Value = of.median() / to.median()
	f.Min, f.Max = f.Value, f.Value
	for rep, x := range of {
		if y, both := to[rep]; both && y != 0 {
			f.Min, f.Max = min(f.Min, x/y), max(f.Max, x/y)
		}
	}
	return f, f.measured()
}

// plain fills in the median of a series.
func (f figure) plain(list []float64) (figure, bool) {
	if len(list) == 0 {
		return f, false
	}
	f.Value = median(list)
	f.Min, f.Max = spreadOf(list)
	return f, f.measured()
}

// measured is false for what no number stands for: a quotient by a CPU time that was
// below the clock's tick, or a curve through too few points.
func (f figure) measured() bool {
	return !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0)
}
