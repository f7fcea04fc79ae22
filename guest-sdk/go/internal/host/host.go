// Package host is what a running handler may say to the host, so that tests can stand in for it.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Why progress was not sent.
var (
	ErrProgressNotRequested  = errors.New("the client asked for no progress")
	ErrProgressNotIncreasing = errors.New("progress must increase")
	ErrClosed                = errors.New("the client is gone, or no call is running")
)

// Host answers for the call that is running.
type Host interface {
	// Request tells what is known of the request; nil between calls.
	Request() *Request
	Progress(done float64, total *float64, message *string) error
	Log(level Level, logger string, data json.RawMessage)
	Changed(change Change, uri string)
	TimeLeft() time.Duration
}

// Level is the importance of a log message, as syslog has them.
type Level uint8

// The levels, least first, in the order of the contract.
const (
	Debug Level = iota
	Info
	Notice
	Warning
	Error
	Critical
	Alert
	Emergency
)

// Change is something that clients may be waiting for.
type Change uint8

// The changes.
const (
	ToolsChanged Change = iota
	PromptsChanged
	ResourcesChanged
	ResourceUpdated
)

// Request is what is known of the request that a handler serves.
type Request struct {
	// ID is the host's name for this call, as in its logs.
	ID string
	// ProtocolVersion is the revision that the client speaks.
	ProtocolVersion string
	// ClientInfo, Meta and More are JSON objects, or nil.
	ClientInfo, Meta, More json.RawMessage
	ClientCapabilities     json.RawMessage
	Traceparent            string
	// Principal and Tenant are the caller as the host verified it; empty when it is not known.
	Principal, Tenant string
	// Session is there for clients of the handshake revisions alone.
	Session       string
	WantsProgress bool
	// Retry says that this run has answers or state of an earlier one.
	Retry bool
}

type key struct{}

// With makes the host known to whoever is given the context.
func With(ctx context.Context, h Host) context.Context { return context.WithValue(ctx, key{}, h) }

// From finds the host; nil when there is none, as in a test that made its own context.
func From(ctx context.Context) Host {
	h, _ := ctx.Value(key{}).(Host)
	return h
}
