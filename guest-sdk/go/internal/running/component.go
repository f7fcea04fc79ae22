//go:build wasip1

package running

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_changes"
	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_context"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/convert"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/host"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
)

// Here is the context of the callback that is running.
func Here() context.Context { return Context(component{}) }

// component speaks to the host that runs this component.
type component struct{}

func (component) Request() *host.Request {
	info := wit.Request()
	if info.Tag() == types.OptionNone {
		return nil
	}
	r := info.Some()
	return &host.Request{
		ID:                 r.Id,
		ProtocolVersion:    r.ProtocolVersion,
		ClientInfo:         raw(r.ClientInfo),
		Meta:               raw(r.Meta),
		More:               raw(r.More),
		ClientCapabilities: json.RawMessage(r.ClientCapabilities),
		Traceparent:        text(r.Traceparent),
		Principal:          text(r.Principal),
		Tenant:             text(r.Tenant),
		Session:            text(r.Session),
		WantsProgress:      r.WantsProgress,
		Retry:              r.Retry,
	}
}

func (component) Progress(done float64, total *float64, message *string) error {
	result := wit.ReportProgress(done, convert.Pointer(total), convert.Pointer(message))
	if result.Tag() == types.ResultOk {
		return nil
	}
	switch result.Err() {
	case wit.ProgressErrorNotRequested:
		return host.ErrProgressNotRequested
	case wit.ProgressErrorNotIncreasing:
		return host.ErrProgressNotIncreasing
	default:
		return host.ErrClosed
	}
}

func (component) Log(level host.Level, logger string, data json.RawMessage) {
	wit.Log(wit.LogLevel(level), convert.Text(logger), string(data))
}

func (component) Changed(change host.Change, uri string) {
	switch change {
	case host.ToolsChanged:
		guesthouse_mcp_changes.ToolsChanged()
	case host.PromptsChanged:
		guesthouse_mcp_changes.PromptsChanged()
	case host.ResourcesChanged:
		guesthouse_mcp_changes.ResourcesChanged()
	case host.ResourceUpdated:
		guesthouse_mcp_changes.ResourceUpdated(uri)
	}
}

func (component) TimeLeft() time.Duration {
	return time.Duration(wit.TimeLeftMs()) * time.Millisecond
}

func text(o types.Option[string]) string {
	value, _ := o.Get()
	return value
}

func raw(o types.Option[string]) json.RawMessage {
	if value, ok := o.Get(); ok {
		return json.RawMessage(value)
	}
	return nil
}
