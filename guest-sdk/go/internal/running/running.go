// Package running makes the context that handlers get.
package running

import (
	"context"
	"time"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/host"
)

// callContext carries the host and the call's deadline. It needs no timer: at the deadline the host stops the guest.
type callContext struct {
	context.Context
	host host.Host
}

// Context is what a handler gets while it serves a call of this host.
func Context(h host.Host) context.Context {
	return callContext{host.With(context.Background(), h), h}
}

// Deadline is when the host will stop the call.
func (c callContext) Deadline() (time.Time, bool) { return time.Now().Add(c.host.TimeLeft()), true }
