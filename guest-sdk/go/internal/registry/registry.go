// Package registry holds what a server is made of, in the order in which its author named it.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Registry is one server: what it says of itself, and its handlers.
type Registry struct {
	Info      Info
	Inits     []func(config json.RawMessage) error
	Tools     []*Tool
	Resources []*Resource
	Templates []*Template
	Prompts   []*Prompt
}

// Info is what a server says of itself.
type Info struct {
	Name, Version, Title, Description, WebsiteURL, Instructions string
	Icons                                                       []mcp.Icon
}

// Common is what everything listed has.
type Common struct {
	Title, Description string
	Icons              []mcp.Icon
	Meta               json.RawMessage
}

// Tool is a tool and its handler.
type Tool struct {
	Common
	Name                      string
	InputSchema, OutputSchema Schema
	Annotations               *ToolAnnotations
	TaskSupport               TaskSupport
	Call                      func(ctx context.Context, arguments json.RawMessage) (*ToolResult, error)
}

// Schema makes a JSON Schema when it is needed; a nil one is absent.
type Schema func() json.RawMessage

// Text is the schema, or nil.
func (s Schema) Text() json.RawMessage {
	if s == nil {
		return nil
	}
	return s()
}

// ToolAnnotations are hints about what a tool does; nil says nothing.
type ToolAnnotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// TaskSupport says whether the host may run a call as a task.
type TaskSupport uint8

// The three answers.
const (
	TaskForbidden TaskSupport = iota
	TaskOptional
	TaskRequired
)

// ToolResult is what a call gives.
type ToolResult struct {
	Content    []mcp.Content
	Structured json.RawMessage
	IsError    bool
	Meta       json.RawMessage
}

// Resource is a resource at a fixed URI.
type Resource struct {
	Common
	URI, Name, MIMEType string
	Size                *uint64
	Annotations         *mcp.Annotations
	Read                func(ctx context.Context, uri string) ([]mcp.ResourceContents, error)
}

// Template is a family of resources.
type Template struct {
	Common
	URITemplate, Name, MIMEType string
	Annotations                 *mcp.Annotations
	// Read is given the variables' values; Match finds them.
	Match      func(uri string) (map[string]string, bool)
	Read       func(ctx context.Context, uri string, variables map[string]string) ([]mcp.ResourceContents, error)
	Completers map[string]Completer
}

// Argument is one argument of a prompt.
type Argument struct {
	Name, Title, Description string
	Required                 bool
}

// Prompt is a prompt and its handler.
type Prompt struct {
	Common
	Name       string
	Arguments  []Argument
	Render     func(ctx context.Context, arguments map[string]string) (*PromptResult, error)
	Completers map[string]Completer
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    mcp.Role
	Content mcp.Content
}

// PromptResult is a rendered prompt.
type PromptResult struct {
	Description string
	Messages    []PromptMessage
}

// Completer proposes values for one argument; resolved are those that the user has settled already.
type Completer func(ctx context.Context, value string, resolved map[string]string) ([]string, error)

// Part is something that a server can be made of.
type Part interface{ Attach(*Registry) error }

// Reference says whose argument is being completed.
type Reference struct {
	// IsTemplate tells a URI template from a prompt's name.
	IsTemplate bool
	Name       string
}

// Attach adds the tool.
func (t *Tool) Attach(r *Registry) error {
	for _, other := range r.Tools {
		if other.Name == t.Name {
			return fmt.Errorf("two tools are named %q", t.Name)
		}
	}
	r.Tools = append(r.Tools, t)
	return nil
}

// Attach adds the resource.
func (res *Resource) Attach(r *Registry) error {
	for _, other := range r.Resources {
		if other.URI == res.URI {
			return fmt.Errorf("two resources have the URI %q", res.URI)
		}
	}
	r.Resources = append(r.Resources, res)
	return nil
}

// Attach adds the template.
func (t *Template) Attach(r *Registry) error {
	for _, other := range r.Templates {
		if other.URITemplate == t.URITemplate {
			return fmt.Errorf("two resource templates are %q", t.URITemplate)
		}
	}
	r.Templates = append(r.Templates, t)
	return nil
}

// Attach adds the prompt.
func (p *Prompt) Attach(r *Registry) error {
	for _, other := range r.Prompts {
		if other.Name == p.Name {
			return fmt.Errorf("two prompts are named %q", p.Name)
		}
	}
	r.Prompts = append(r.Prompts, p)
	return nil
}

// Init hands the operator's configuration to whoever asked for it.
func (r *Registry) Init(config json.RawMessage) error {
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	for _, init := range r.Inits {
		if err := init(config); err != nil {
			return err
		}
	}
	return nil
}

// CallTool runs a tool. A plain error of its handler becomes a result that the model can read.
func (r *Registry) CallTool(ctx context.Context, name string, arguments json.RawMessage) (*ToolResult, error) {
	for _, tool := range r.Tools {
		if tool.Name != name {
			continue
		}
		result, err := tool.Call(ctx, arguments)
		if err == nil {
			return result, nil
		}
		if meant := new(mcp.Error); errors.As(err, &meant) {
			return nil, meant
		}
		return &ToolResult{IsError: true, Content: []mcp.Content{mcp.Text{Text: err.Error()}}}, nil
	}
	return nil, mcp.NotFound(name)
}

// ReadResource reads a resource by its own URI, or else through the first template that matches it.
func (r *Registry) ReadResource(ctx context.Context, uri string) ([]mcp.ResourceContents, error) {
	for _, resource := range r.Resources {
		if resource.URI == uri {
			return resource.Read(ctx, uri)
		}
	}
	for _, template := range r.Templates {
		if variables, ok := template.Match(uri); ok {
			return template.Read(ctx, uri, variables)
		}
	}
	return nil, mcp.NotFound(uri)
}

// GetPrompt renders a prompt.
func (r *Registry) GetPrompt(ctx context.Context, name string, arguments map[string]string) (*PromptResult, error) {
	for _, prompt := range r.Prompts {
		if prompt.Name == name {
			return prompt.Render(ctx, arguments)
		}
	}
	return nil, mcp.NotFound(name)
}

// Complete proposes values. An argument that nobody completes has none; that is no error.
func (r *Registry) Complete(ctx context.Context, of Reference, argument, value string, resolved map[string]string) ([]string, error) {
	completers, found := r.completers(of)
	if !found {
		return nil, mcp.NotFound(of.Name)
	}
	complete, ok := completers[argument]
	if !ok {
		return nil, nil
	}
	return complete(ctx, value, resolved)
}

func (r *Registry) completers(of Reference) (map[string]Completer, bool) {
	if of.IsTemplate {
		for _, template := range r.Templates {
			if template.URITemplate == of.Name {
				return template.Completers, true
			}
		}
		return nil, false
	}
	for _, prompt := range r.Prompts {
		if prompt.Name == of.Name {
			return prompt.Completers, true
		}
	}
	return nil, false
}

var served *Registry

// Serve makes this the server that the component exports.
func Serve(r *Registry) { served = r }

// Served is the server that the component exports; an empty one when the guest has not said.
func Served() *Registry {
	if served == nil {
		return &Registry{}
	}
	return served
}
