// Package demo plays two stories to a real server on a temporary SQLite file, over
// real HTTP with real signatures: a song whose callbacks come many times at once
// and in no order, and a day of sales from four senders. Beside the server stand
// two naive handlers that get the very same deliveries, to show what they make of
// them.
//
// The day is a script: made-up sales with made-up amounts, drawn with a seed, so
// that what must come out is known beforehand. Every figure of Onceward is read
// back from the store and compared with the script.
package demo
