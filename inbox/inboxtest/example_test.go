package inboxtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/inboxtest"
)

// A test of a handler: the whole life of a payment in every order, each event
// twice, must send one mail.
func ExampleInbox_EveryOrder() {
	testPaidOnce := func(t testing.TB) {
		in := inboxtest.New(t, "stripe")
		mails := 0
		in.Handle("payment.paid", func(context.Context, onceward.Change) error { mails++; return nil })
		in.EveryOrder("stripe", "payment", func() {
			if got := in.Entity("payment", "pi_3MadeUpIntent0001").Status; got != "refunded" || mails != 1 {
				t.Errorf("status %s, %d mails", got, mails)
			}
			mails = 0
		})
	}
	_ = testPaidOnce // in a file of tests: func TestPaidOnce(t *testing.T)
}

// One delivery, its row, and the work that hangs on it.
func Example() {
	t := &narrator{} // in a test: its own t
	defer t.end()

	in := inboxtest.New(t, "stripe")
	in.Handle("payment.paid", func(_ context.Context, c onceward.Change) error {
		fmt.Printf("%s is paid: %d %s\n", c.Key, c.Int("captured"), c.String("currency"))
		return nil
	})
	in.Send("stripe", "charge.succeeded", "charge.succeeded")
	fmt.Println(in.Work(), "job")
	fmt.Println(in.Entity("payment", "pi_3MadeUpIntent0001").Status)
	// Output:
	// pi_3MadeUpIntent0001 is paid: 4990 BRL
	// 1 job
	// paid
}
