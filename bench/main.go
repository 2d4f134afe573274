package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit code. In a process that the program has
// started from its own binary it is the server under test instead.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if order, is := os.LookupEnv(serverVariable); is {
		if err := serve(order, os.Stdin, stdout, stderr); err != nil {
			_, _ = fmt.Fprintln(stderr, "server under test:", err)
			return 1
		}
		return 0
	}
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	if err := measure(ctx, o, stdout, stderr); err != nil {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}
