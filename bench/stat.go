package main

import (
	"math"
	"slices"
	"time"
)

// percentile returns the value of a sorted list that a share p of it, from 0 to 1,
// does not exceed; 0 if the list is empty.
func percentile[T any](sorted []T, p float64) T {
	if len(sorted) == 0 {
		var none T
		return none
	}
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// median returns the middle one of some numbers, between two the mean of them; NaN
// if there are none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// slope returns the exponent e of y = c * x^e that fits best, by least squares over
// the logarithms of what is above zero; NaN for less than two points.
func slope(x, y []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range min(len(x), len(y)) {
		if x[i] <= 0 || y[i] <= 0 {
			continue // shorter than the clock can tell
		}
		lx, ly := math.Log(x[i]), math.Log(y[i])
		n, sx, sy, sxx, sxy = n+1, sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	if n < 2 {
		return math.NaN()
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
