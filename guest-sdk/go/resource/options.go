package resource

import (
	"encoding/json"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Option says more of a resource or a template.
type Option interface {
	TemplateOption
	applyResource(*registry.Resource)
}

// TemplateOption says more of a template: an [Option], or a completion of package complete.
type TemplateOption interface{ ApplyTemplate(*registry.Template) }

type option struct {
	resource func(*registry.Resource)
	template func(*registry.Template)
}

func (o option) applyResource(r *registry.Resource) { o.resource(r) }
func (o option) ApplyTemplate(t *registry.Template) { o.template(t) }

// Title is a name for people.
func Title(title string) Option { return common(func(c *registry.Common) { c.Title = title }) }

// Icons are pictures to show beside the name.
func Icons(icons ...mcp.Icon) Option { return common(func(c *registry.Common) { c.Icons = icons }) }

// Meta is the entry's _meta, a JSON object.
func Meta(meta json.RawMessage) Option { return common(func(c *registry.Common) { c.Meta = meta }) }

// MIMEType replaces the type that follows from what the function gives.
func MIMEType(mimeType string) Option {
	return option{
		func(r *registry.Resource) { r.MIMEType = mimeType },
		func(t *registry.Template) { t.MIMEType = mimeType },
	}
}

// Annotations are hints for the client.
func Annotations(annotations mcp.Annotations) Option {
	return option{
		func(r *registry.Resource) { r.Annotations = &annotations },
		func(t *registry.Template) { t.Annotations = &annotations },
	}
}

func common(change func(*registry.Common)) Option {
	return option{
		func(r *registry.Resource) { change(&r.Common) },
		func(t *registry.Template) { change(&t.Common) },
	}
}
