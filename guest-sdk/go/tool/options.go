package tool

import (
	"encoding/json"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Option says more of a tool.
type Option func(*Tool)

// Title is a name for people.
func Title(title string) Option { return func(t *Tool) { t.Title = title } }

// Icons are pictures to show beside the name.
func Icons(icons ...mcp.Icon) Option { return func(t *Tool) { t.Icons = icons } }

// Meta is the tool's _meta, a JSON object.
func Meta(meta json.RawMessage) Option { return func(t *Tool) { t.Meta = meta } }

// InputSchema replaces the schema derived from the function's arguments.
func InputSchema(schema json.RawMessage) Option {
	return func(t *Tool) { t.InputSchema = given(schema) }
}

// OutputSchema replaces the schema derived from the function's result.
func OutputSchema(schema json.RawMessage) Option {
	return func(t *Tool) { t.OutputSchema = given(schema) }
}

func given(schema json.RawMessage) registry.Schema {
	return func() json.RawMessage { return schema }
}

// ReadOnly says that the tool changes nothing.
func ReadOnly() Option {
	return hint(func(a *registry.ToolAnnotations) **bool { return &a.ReadOnly }, true)
}

// Destructive says whether the tool may destroy something.
func Destructive(may bool) Option {
	return hint(func(a *registry.ToolAnnotations) **bool { return &a.Destructive }, may)
}

// Idempotent says that calling it again with the same arguments changes nothing more.
func Idempotent() Option {
	return hint(func(a *registry.ToolAnnotations) **bool { return &a.Idempotent }, true)
}

// OpenWorld says whether the tool deals with things outside of the server.
func OpenWorld(does bool) Option {
	return hint(func(a *registry.ToolAnnotations) **bool { return &a.OpenWorld }, does)
}

// AsTask lets the host run a long call as a task; required, it always does.
func AsTask(required bool) Option {
	return func(t *Tool) {
		t.TaskSupport = registry.TaskOptional
		if required {
			t.TaskSupport = registry.TaskRequired
		}
	}
}

func hint(field func(*registry.ToolAnnotations) **bool, value bool) Option {
	return func(t *Tool) {
		if t.Annotations == nil {
			t.Annotations = &registry.ToolAnnotations{}
		}
		*field(t.Annotations) = &value
	}
}
