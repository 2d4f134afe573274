package inboxtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/onceward/onceward/provider"
)

// defaultOrders is how many orders are played unless told otherwise: all of up to
// six events.
const defaultOrders = 720

// EveryOrder plays the sample life cycle of a kind (all samples of the source's
// provider about one payment, say) in every order, up to Orders of them, each event
// twice. Each order is played on an empty store, with the handlers that are
// registered; then their jobs are done and check is called. Where check fails the
// test, EveryOrder prints the order and stops. What check counts it has to reset
// itself.
func (in *Inbox) EveryOrder(source, kind string, check func()) {
	in.t.Helper()
	in.samples(source) // names the source, or what there is
	p := in.inbox.Provider(source)
	samples := provider.Lifecycle(p.Name(), kind)
	if len(samples) == 0 {
		in.t.Fatalf("inboxtest: no sample of %s tells about a %s", source, kind)
	}
	rng := rand.New(rand.NewPCG(in.Seed, 0))
	most := in.Orders
	if most == 0 {
		most = defaultOrders
	}
	for i, order := range orders(len(samples), most, rng) {
		if !in.play(source, samples, twice(order, rng), check) {
			in.t.Logf("inboxtest: that was order %d, with Seed %d", i+1, in.Seed)
			return
		}
	}
}

// play plays one sequence of samples on an empty store and reports whether the test
// has not failed by it.
func (in *Inbox) play(source string, samples []provider.Sample, sequence []int, check func()) (passed bool) {
	in.t.Helper()
	in.close()
	in.open()
	before := in.t.Failed()
	defer func() { // also when check ends the test
		if in.t.Failed() && !before {
			in.t.Logf("inboxtest: it failed in this order:\n%s", listing(samples, sequence))
			passed = false
		}
	}()
	for _, i := range sequence {
		in.send(source, &samples[i])
	}
	in.Work()
	check()
	return true
}

// listing shows a sequence, one delivery a line.
func listing(samples []provider.Sample, sequence []int) string {
	var b strings.Builder
	seen := map[int]bool{}
	for _, i := range sequence {
		again := ""
		if seen[i] {
			again = " (again)"
		}
		seen[i] = true
		fmt.Fprintf(&b, "  %s%s\n", samples[i].Name, again)
	}
	return b.String()
}

// orders returns the orders of n things: all of them if they are at most so many,
// else the one in which they happened, its reverse, and drawn ones.
func orders(n, most int, rng *rand.Rand) [][]int {
	natural := make([]int, n)
	for i := range natural {
		natural[i] = i
	}
	if count(n) <= most {
		return permutations(natural)
	}
	reversed := slices.Clone(natural)
	slices.Reverse(reversed)
	list := [][]int{natural, reversed}[:min(2, most)]
	for len(list) < most {
		list = append(list, rng.Perm(n))
	}
	return list
}

// count is n!, or some large number.
func count(n int) int {
	c := 1
	for i := 2; i <= n && c < 1<<40; i++ {
		c *= i
	}
	return c
}

// permutations returns all orders of list, list itself first.
func permutations(list []int) [][]int {
	if len(list) <= 1 {
		return [][]int{slices.Clone(list)}
	}
	var all [][]int
	for i := range list {
		rest := slices.Concat(list[:i], list[i+1:])
		for _, p := range permutations(rest) {
			all = append(all, append([]int{list[i]}, p...))
		}
	}
	return all
}

// twice returns the order with each element a second time, somewhere behind the
// first.
func twice(order []int, rng *rand.Rand) []int {
	sequence := slices.Clone(order)
	for _, i := range order {
		first := slices.Index(sequence, i)
		at := first + 1 + rng.IntN(len(sequence)-first)
		sequence = slices.Insert(sequence, at, i)
	}
	return sequence
}
