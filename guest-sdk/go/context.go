package guesthouse

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/host"
)

// Request is what is known of the request that a handler serves.
type Request = host.Request

// RequestFrom tells what is known of the request; false outside of one.
func RequestFrom(ctx context.Context) (Request, bool) {
	if h := host.From(ctx); h != nil {
		if request := h.Request(); request != nil {
			return *request, true
		}
	}
	return Request{}, false
}

// Why progress was not sent. Handlers need not look: a client that asked for none is no mistake.
var (
	ErrProgressNotRequested  = host.ErrProgressNotRequested
	ErrProgressNotIncreasing = host.ErrProgressNotIncreasing
	ErrClosed                = host.ErrClosed
)

// Progress tells the client how far the call has come. A total of 0 means that it is not known; message may be empty.
func Progress(ctx context.Context, done, total float64, message string) error {
	h := host.From(ctx)
	if h == nil {
		return ErrClosed
	}
	var of *float64
	if total != 0 {
		of = &total
	}
	var text *string
	if message != "" {
		text = &message
	}
	return h.Progress(done, of, text)
}

// Levels that slog has no name for.
const (
	LevelNotice    = slog.Level(2)
	LevelCritical  = slog.Level(12)
	LevelAlert     = slog.Level(16)
	LevelEmergency = slog.Level(20)
)

// Log is a logger whose messages go to the client, if it asked for messages of that level. Its groups become nested objects.
func Log(ctx context.Context) *slog.Logger { return slog.New(&logHandler{host: host.From(ctx)}) }

// ToolsChanged tells clients to list the tools again, once the call has succeeded.
func ToolsChanged(ctx context.Context) { changed(ctx, host.ToolsChanged, "") }

// PromptsChanged tells clients to list the prompts again, once the call has succeeded.
func PromptsChanged(ctx context.Context) { changed(ctx, host.PromptsChanged, "") }

// ResourcesChanged tells clients to list the resources again, once the call has succeeded.
func ResourcesChanged(ctx context.Context) { changed(ctx, host.ResourcesChanged, "") }

// ResourceUpdated tells whoever watches the resource to read it again, once the call has succeeded.
func ResourceUpdated(ctx context.Context, uri string) { changed(ctx, host.ResourceUpdated, uri) }

func changed(ctx context.Context, change host.Change, uri string) {
	if h := host.From(ctx); h != nil {
		h.Changed(change, uri)
	}
}

type logHandler struct {
	host   host.Host
	groups []string
	// attrs are those given so far, with the groups that each belongs to.
	attrs []groupedAttr
}

type groupedAttr struct {
	groups []string
	attr   slog.Attr
}

func (l *logHandler) Enabled(context.Context, slog.Level) bool { return l.host != nil }

func (l *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	next := *l
	next.groups = append(slices.Clip(l.groups), name)
	return &next
}

func (l *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *l
	next.attrs = slices.Clip(l.attrs)
	for _, attr := range attrs {
		next.attrs = append(next.attrs, groupedAttr{l.groups, attr})
	}
	return &next
}

func (l *logHandler) Handle(_ context.Context, record slog.Record) error {
	members := map[string]any{}
	for _, grouped := range l.attrs {
		put(members, grouped.groups, grouped.attr)
	}
	record.Attrs(func(attr slog.Attr) bool {
		put(members, l.groups, attr)
		return true
	})
	var data any = record.Message
	if len(members) > 0 {
		members["message"] = record.Message
		data = members
	}
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	l.host.Log(level(record.Level), "", text)
	return nil
}

func put(members map[string]any, groups []string, attr slog.Attr) {
	for _, group := range groups {
		inner, ok := members[group].(map[string]any)
		if !ok {
			inner = map[string]any{}
			members[group] = inner
		}
		members = inner
	}
	value := attr.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if attr.Key != "" {
			groups = []string{attr.Key}
		} else {
			groups = nil
		}
		for _, inner := range value.Group() {
			put(members, groups, inner)
		}
		return
	}
	if attr.Key == "" {
		return
	}
	if err, ok := value.Any().(error); ok {
		// Errors rarely marshal to anything.
		members[attr.Key] = err.Error()
		return
	}
	members[attr.Key] = value.Any()
}

func level(of slog.Level) host.Level {
	switch {
	case of < slog.LevelInfo:
		return host.Debug
	case of < LevelNotice:
		return host.Info
	case of < slog.LevelWarn:
		return host.Notice
	case of < slog.LevelError:
		return host.Warning
	case of < LevelCritical:
		return host.Error
	case of < LevelAlert:
		return host.Critical
	case of < LevelEmergency:
		return host.Alert
	default:
		return host.Emergency
	}
}
