// Package export_guesthouse_mcp_tools answers the contract's interface tools. The bindings choose its name.
package export_guesthouse_mcp_tools

import (
	"encoding/json"

	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_tools"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/convert"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/running"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
)

// ListTools lists all tools on one page.
func ListTools(types.Option[string]) types.Result[wit.ToolPage, guesthouse_mcp_types.Error] {
	tools := []wit.Tool{}
	for _, tool := range registry.Served().Tools {
		tools = append(tools, wit.Tool{
			Name: tool.Name, Title: convert.Text(tool.Title), Description: convert.Text(tool.Description),
			InputSchema: string(tool.InputSchema.Text()), OutputSchema: convert.JSON(tool.OutputSchema.Text()),
			Annotations: annotations(tool.Annotations), Icons: convert.Icons(tool.Icons),
			TaskSupport: taskSupport(tool.TaskSupport), Meta: convert.JSON(tool.Meta),
		})
	}
	return types.Ok[wit.ToolPage, guesthouse_mcp_types.Error](wit.ToolPage{Tools: tools})
}

// CallTool runs a tool.
func CallTool(name, arguments string) types.Result[wit.ToolOutcome, guesthouse_mcp_types.Error] {
	result, err := registry.Served().CallTool(running.Here(), name, json.RawMessage(arguments))
	if err != nil {
		return types.Err[wit.ToolOutcome](convert.Error(err))
	}
	return types.Ok[wit.ToolOutcome, guesthouse_mcp_types.Error](wit.MakeToolOutcomeComplete(guesthouse_mcp_types.ToolResult{
		Content: convert.Contents(result.Content), StructuredContent: convert.JSON(result.Structured),
		IsError: result.IsError, Meta: convert.JSON(result.Meta),
	}))
}

func annotations(a *registry.ToolAnnotations) types.Option[wit.ToolAnnotations] {
	if a == nil {
		return types.None[wit.ToolAnnotations]()
	}
	return types.Some(wit.ToolAnnotations{
		ReadOnly: convert.Pointer(a.ReadOnly), Destructive: convert.Pointer(a.Destructive),
		Idempotent: convert.Pointer(a.Idempotent), OpenWorld: convert.Pointer(a.OpenWorld),
	})
}

func taskSupport(support registry.TaskSupport) wit.TaskSupport {
	switch support {
	case registry.TaskOptional:
		return wit.TaskSupportOptional
	case registry.TaskRequired:
		return wit.TaskSupportRequired
	default:
		return wit.TaskSupportForbidden
	}
}
