// Package guesthousetest calls a server's handlers in plain `go test`, without a host or a component.
package guesthousetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	guesthouse "github.com/guesthouse-mcp/guesthouse/guest-sdk/go"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/host"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/running"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Client stands in for a client and the host between. What handlers report is kept in it.
type Client struct {
	t        testing.TB
	registry *registry.Registry
	// Request is what handlers are told of the request.
	Request  guesthouse.Request
	Progress []Progress
	Logs     []Log
	// Changes are the lists ("tools", "prompts", "resources") and the URIs that were said to have changed.
	Changes []string
}

// Progress is one report of progress.
type Progress struct {
	Done, Total float64
	Message     string
}

// Log is one message to the client's log; Level counts from 0, debug, to 7, emergency.
type Log struct {
	Level int
	Data  json.RawMessage
}

// New makes a client of a server, whose configuration is empty.
func New(t testing.TB, server *guesthouse.Server) *Client {
	return NewWithConfig(t, server, struct{}{})
}

// NewWithConfig makes a client of a server with this configuration.
func NewWithConfig(t testing.TB, server *guesthouse.Server, config any) *Client {
	t.Helper()
	c := &Client{t: t, registry: server.Registry(), Request: guesthouse.Request{ID: "test", WantsProgress: true}}
	for _, tool := range c.registry.Tools {
		tool.InputSchema.Text()
		tool.OutputSchema.Text()
	}
	if err := c.registry.Init(c.encode(config)); err != nil {
		t.Fatalf("the server does not start: %v", err)
	}
	return c
}

// Context is what handlers get.
func (c *Client) Context() context.Context { return running.Context(standIn{c}) }

// Call runs a tool, whose arguments are anything that becomes a JSON object.
func (c *Client) Call(name string, arguments any) (*registry.ToolResult, error) {
	c.t.Helper()
	return c.registry.CallTool(c.Context(), name, c.encode(arguments))
}

// Text runs a tool and gives the text of its result, and whether it is an error.
func (c *Client) Text(name string, arguments any) (text string, isError bool) {
	c.t.Helper()
	result, err := c.Call(name, arguments)
	if err != nil {
		c.t.Fatalf("tool %s: %v", name, err)
	}
	for _, content := range result.Content {
		if block, ok := content.(mcp.Text); ok {
			text += block.Text
		}
	}
	return text, result.IsError
}

// Read reads a resource.
func (c *Client) Read(uri string) ([]mcp.ResourceContents, error) {
	return c.registry.ReadResource(c.Context(), uri)
}

// Prompt renders a prompt.
func (c *Client) Prompt(name string, arguments map[string]string) (*registry.PromptResult, error) {
	return c.registry.GetPrompt(c.Context(), name, arguments)
}

// CompletePrompt proposes values for an argument of a prompt.
func (c *Client) CompletePrompt(name, argument, typed string) ([]string, error) {
	return c.registry.Complete(c.Context(), registry.Reference{Name: name}, argument, typed, nil)
}

// CompleteTemplate proposes values for a variable of a resource template.
func (c *Client) CompleteTemplate(uriTemplate, variable, typed string) ([]string, error) {
	return c.registry.Complete(c.Context(), registry.Reference{IsTemplate: true, Name: uriTemplate}, variable, typed, nil)
}

func (c *Client) encode(value any) json.RawMessage {
	c.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		c.t.Fatalf("%T is no JSON: %v", value, err)
	}
	return text
}

// standIn is the client as its handlers see it.
type standIn struct{ client *Client }

func (s standIn) Request() *host.Request {
	request := s.client.Request
	return &request
}

func (s standIn) Progress(done float64, total *float64, message *string) error {
	report := Progress{Done: done}
	if total != nil {
		report.Total = *total
	}
	if message != nil {
		report.Message = *message
	}
	if n := len(s.client.Progress); n > 0 && done <= s.client.Progress[n-1].Done {
		return host.ErrProgressNotIncreasing
	}
	s.client.Progress = append(s.client.Progress, report)
	return nil
}

func (s standIn) Log(level host.Level, _ string, data json.RawMessage) {
	s.client.Logs = append(s.client.Logs, Log{int(level), data})
}

func (s standIn) Changed(change host.Change, uri string) {
	switch change {
	case host.ToolsChanged:
		uri = "tools"
	case host.PromptsChanged:
		uri = "prompts"
	case host.ResourcesChanged:
		uri = "resources"
	}
	s.client.Changes = append(s.client.Changes, uri)
}

func (s standIn) TimeLeft() time.Duration { return 30 * time.Second }
