package guesthouse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	guesthouse "github.com/guesthouse-mcp/guesthouse/guest-sdk/go"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/complete"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/guesthousetest"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/prompt"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/resource"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/tool"
)

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func (p point) String() string { return fmt.Sprintf("(%d, %d)", p.X, p.Y) }

type page struct {
	Number int     `json:"number"`
	Name   *string `json:"name"`
}

type color struct {
	Name   string `json:"name"`
	Shade  string `json:"shade,omitempty"`
	Amount *int   `json:"amount"`
}

var info = guesthouse.Info{Name: "test", Version: "1"}

func echo[T any](_ context.Context, in T) (T, error) { return in, nil }

func TestWhatAToolGivesDecidesItsResult(t *testing.T) {
	always := func(err error) func(context.Context, struct{}) (string, error) {
		return func(context.Context, struct{}) (string, error) { return "", err }
	}
	client := guesthousetest.New(t, guesthouse.New(info,
		tool.New("point", "", echo[point]),
		tool.New("names", "", func(context.Context, struct{}) ([]string, error) { return []string{"a"}, nil }),
		tool.New("content", "", func(context.Context, struct{}) ([]mcp.Content, error) {
			return []mcp.Content{mcp.Text{Text: "a"}, mcp.Image{Data: []byte{1}, MIMEType: "image/png"}}, nil
		}),
		tool.New("result", "", func(context.Context, struct{}) (*tool.Result, error) { return tool.Error("no %s", "luck"), nil }),
		tool.New("fails", "", always(errors.New("out of paper"))),
		tool.New("forbids", "", always(fmt.Errorf("wrapped: %w", mcp.Protocol(-32050, "own", nil)))),
	))
	result, err := client.Call("point", map[string]int{"x": 1, "y": 2})
	if err != nil || string(result.Structured) != `{"x":1,"y":2}` || !reflect.DeepEqual(result.Content, []mcp.Content{mcp.Text{Text: "(1, 2)"}}) {
		t.Errorf("point: %+v, %v", result, err)
	}
	result, err = client.Call("names", struct{}{})
	if err != nil || string(result.Structured) != `["a"]` || !reflect.DeepEqual(result.Content, []mcp.Content{mcp.Text{Text: `["a"]`}}) {
		t.Errorf("names: %+v, %v", result, err)
	}
	if result, err = client.Call("content", struct{}{}); err != nil || len(result.Content) != 2 || result.Structured != nil {
		t.Errorf("content: %+v, %v", result, err)
	}
	for name, want := range map[string]string{"result": "no luck", "fails": "out of paper"} {
		if text, isError := client.Text(name, struct{}{}); text != want || !isError {
			t.Errorf("%s: %q, %v", name, text, isError)
		}
	}
	meant := new(mcp.Error)
	if _, err := client.Call("forbids", struct{}{}); !errors.As(err, &meant) || meant.Code != -32050 {
		t.Errorf("forbids: %v", err)
	}
	if _, err := client.Call("nope", struct{}{}); !errors.As(err, &meant) || meant.Kind != mcp.KindNotFound || meant.Message != "nope" {
		t.Errorf("nope: %v", err)
	}
	if _, err := client.Call("point", "text"); !errors.As(err, &meant) || meant.Kind != mcp.KindInvalidParams {
		t.Errorf("arguments that do not fit: %v", err)
	}
}

func TestResourcesAndTemplates(t *testing.T) {
	client := guesthousetest.New(t, guesthouse.New(info,
		resource.New("a://bytes", "bytes", "", func(context.Context) ([]byte, error) { return nil, nil }),
		resource.New("a://json", "json", "", func(context.Context) (point, error) { return point{1, 2}, nil }),
		resource.Template("a://page/{number}/{+name}", "page", "", func(_ context.Context, p page) (string, error) {
			if p.Number == 0 {
				return "", resource.ErrNotFound
			}
			return fmt.Sprint(p.Number, *p.Name), nil
		}),
	))
	for uri, want := range map[string]mcp.ResourceContents{
		"a://bytes":        {URI: "a://bytes", MIMEType: "application/octet-stream", Blob: []byte{}},
		"a://json":         {URI: "a://json", MIMEType: "application/json", Text: `{"x":1,"y":2}`},
		"a://page/3/a%20b": {URI: "a://page/3/a%20b", MIMEType: "text/plain", Text: "3a b"},
	} {
		if got, err := client.Read(uri); err != nil || !reflect.DeepEqual(got, []mcp.ResourceContents{want}) {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"a://page/0/a", "a://page/many/a", "a://else"} {
		meant := new(mcp.Error)
		if _, err := client.Read(uri); !errors.As(err, &meant) || meant.Kind != mcp.KindNotFound || meant.Message != uri {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestPromptsAndCompletion(t *testing.T) {
	client := guesthousetest.New(t, guesthouse.New(info,
		prompt.New("color", "Paints.", func(_ context.Context, c color) (string, error) {
			return fmt.Sprint(c.Name, c.Shade, c.Amount == nil), nil
		},
			complete.Values("name", "Red", "Rose", "Green"),
			complete.Argument("shade", func(_ context.Context, typed string, _ map[string]string) ([]string, error) {
				return []string{typed + "!"}, nil
			})),
	))
	got, err := client.Prompt("color", map[string]string{"name": "Red"})
	want := &prompt.Result{Description: "Paints.", Messages: []prompt.Message{prompt.User("Redtrue")}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	meant := new(mcp.Error)
	if _, err := client.Prompt("color", nil); !errors.As(err, &meant) || meant.Kind != mcp.KindInvalidParams || !strings.Contains(meant.Message, "name is required") {
		t.Errorf("a missing argument: %v", err)
	}
	if _, err := client.Prompt("color", map[string]string{"name": "Red", "amount": "lots"}); !errors.As(err, &meant) || meant.Kind != mcp.KindInvalidParams {
		t.Errorf("a wrong argument: %v", err)
	}
	for typed, want := range map[string][]string{"r": {"Red", "Rose"}, "": {"Red", "Rose", "Green"}, "x": {}, "redder": {}} {
		if got, err := client.CompletePrompt("color", "name", typed); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", typed, got, err)
		}
	}
	if got, err := client.CompletePrompt("color", "shade", "a"); err != nil || !reflect.DeepEqual(got, []string{"a!"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := client.CompletePrompt("color", "amount", ""); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestHandlersSpeakToTheHost(t *testing.T) {
	client := guesthousetest.New(t, guesthouse.New(info, tool.New("work", "", func(ctx context.Context, _ struct{}) (string, error) {
		if _, ok := ctx.Deadline(); !ok {
			return "", errors.New("no deadline")
		}
		if err := guesthouse.Progress(ctx, 1, 2, "half"); err != nil {
			return "", err
		}
		if err := guesthouse.Progress(ctx, 1, 2, "again"); !errors.Is(err, guesthouse.ErrProgressNotIncreasing) {
			return "", fmt.Errorf("progress that stands still: %w", err)
		}
		guesthouse.Log(ctx).Info("plain")
		guesthouse.Log(ctx).With("a", 1).WithGroup("g").Error("grouped", "cause", errors.New("e"))
		guesthouse.ResourceUpdated(ctx, "a://b")
		request, _ := guesthouse.RequestFrom(ctx)
		return request.Principal, nil
	})))
	client.Request.Principal = "somebody"
	if text, isError := client.Text("work", struct{}{}); text != "somebody" || isError {
		t.Fatal(text)
	}
	if !reflect.DeepEqual(client.Progress, []guesthousetest.Progress{{Done: 1, Total: 2, Message: "half"}}) {
		t.Errorf("%+v", client.Progress)
	}
	logs := []guesthousetest.Log{
		{Level: 1, Data: json.RawMessage(`"plain"`)},
		{Level: 4, Data: json.RawMessage(`{"a":1,"g":{"cause":"e"},"message":"grouped"}`)},
	}
	if !reflect.DeepEqual(client.Logs, logs) || !reflect.DeepEqual(client.Changes, []string{"a://b"}) {
		t.Errorf("%v %v", client.Logs, client.Changes)
	}
}

func TestHandlersRunWithoutAHost(t *testing.T) {
	ctx := context.Background()
	guesthouse.Log(ctx).Info("nobody hears it")
	guesthouse.ToolsChanged(ctx)
	if err := guesthouse.Progress(ctx, 1, 2, ""); !errors.Is(err, guesthouse.ErrClosed) {
		t.Error(err)
	}
	if _, ok := guesthouse.RequestFrom(ctx); ok {
		t.Error("a request from nowhere")
	}
}

func TestMistakesInTheProgramPanicWithASentence(t *testing.T) {
	read := func(context.Context, page) (string, error) { return "", nil }
	for want, mistake := range map[string]func(){
		`two tools are named "a"`: func() { guesthouse.New(info, tool.New("a", "", echo[point]), tool.New("a", "", echo[point])) },
		`field F`: func() {
			guesthousetest.New(t, guesthouse.New(info, tool.New("a", "", echo[struct{ F func() }])))
		},
		`must be a struct`:                      func() { tool.New("a", "", func(context.Context, string) (string, error) { return "", nil }) },
		`has no variable "name" for field Name`: func() { resource.Template("a://{number}", "", "", read) },
		`has the json tag "extra"`:              func() { resource.Template("a://{number}/{name}/{extra}", "", "", read) },
		`no argument "other" to complete`: func() {
			prompt.New("p", "", func(context.Context, color) (string, error) { return "", nil }, complete.Values("other", "x"))
		},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}()
			mistake()
		}()
	}
}

func TestConfiguration(t *testing.T) {
	var got point
	server := guesthouse.New(info, guesthouse.Config(func(p point) error { got = p; return nil }))
	guesthousetest.NewWithConfig(t, server, point{3, 4})
	if got != (point{3, 4}) {
		t.Errorf("%+v", got)
	}
	refuses := guesthouse.New(info, guesthouse.Config(func(point) error { return errors.New("no") }))
	if err := refuses.Registry().Init(nil); err == nil || err.Error() != "no" {
		t.Error(err)
	}
}
