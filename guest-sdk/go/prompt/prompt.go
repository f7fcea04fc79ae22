// Package prompt makes prompts of functions. Importing it makes a guest offer prompts.
package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/words"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Result is for handlers that want to say everything themselves.
type Result = registry.PromptResult

// Message is one message of a prompt.
type Message = registry.PromptMessage

// User is a text that the user says.
func User(text string) Message { return Message{Role: mcp.User, Content: mcp.Text{Text: text}} }

// Assistant is a text that the model says.
func Assistant(text string) Message {
	return Message{Role: mcp.Assistant, Content: mcp.Text{Text: text}}
}

// New makes a prompt of a function. In is a struct, whose fields are the arguments: their names come from the json tags,
// their descriptions from the description tags, and those that are pointers or omitempty are optional.
//
// What Out is decides what the client gets: a string is one message of the user, a [Message] or a slice of them is itself,
// and a *[Result] says everything. An error goes to the log unless it has a meaning, see package mcp.
//
// New panics when In cannot be filled from strings, as that is a mistake in the program.
func New[In any, Out string | Message | []Message | *Result](
	name, description string, render func(ctx context.Context, in In) (Out, error), options ...Option,
) *registry.Prompt {
	fields, err := words.Fields(reflect.TypeFor[In]())
	if err != nil {
		panic(fmt.Sprintf("prompt %q: %v", name, err))
	}
	p := &registry.Prompt{Name: name, Common: registry.Common{Description: description}, Completers: map[string]registry.Completer{}}
	names := []string{}
	for _, field := range fields {
		names = append(names, field.Name)
		p.Arguments = append(p.Arguments, registry.Argument{
			Name: field.Name, Title: field.Tag.Get("title"), Description: field.Tag.Get("description"), Required: !field.Optional,
		})
	}
	for _, option := range options {
		option.ApplyPrompt(p)
	}
	for argument := range p.Completers {
		if !slices.Contains(names, argument) {
			panic(fmt.Sprintf("prompt %q has no argument %q to complete", name, argument))
		}
	}
	p.Render = func(ctx context.Context, arguments map[string]string) (*Result, error) {
		var in In
		if err := words.Fill(reflect.ValueOf(&in).Elem(), fields, arguments); err != nil {
			return nil, mcp.InvalidParams("%v", err)
		}
		out, err := render(ctx, in)
		if err != nil {
			return nil, err
		}
		return result(description, out), nil
	}
	return p
}

func result(description string, out any) *Result {
	switch out := out.(type) {
	case string:
		return &Result{Description: description, Messages: []Message{User(out)}}
	case Message:
		return &Result{Description: description, Messages: []Message{out}}
	case []Message:
		return &Result{Description: description, Messages: out}
	case *Result:
		if out != nil {
			return out
		}
	}
	return &Result{Description: description}
}

// Option says more of a prompt: one of this package's, or a completion of package complete.
type Option interface{ ApplyPrompt(*registry.Prompt) }

type option func(*registry.Prompt)

func (o option) ApplyPrompt(p *registry.Prompt) { o(p) }

// Title is a name for people.
func Title(title string) Option { return option(func(p *registry.Prompt) { p.Title = title }) }

// Icons are pictures to show beside the name.
func Icons(icons ...mcp.Icon) Option { return option(func(p *registry.Prompt) { p.Icons = icons }) }

// Meta is the prompt's _meta, a JSON object.
func Meta(meta json.RawMessage) Option { return option(func(p *registry.Prompt) { p.Meta = meta }) }
