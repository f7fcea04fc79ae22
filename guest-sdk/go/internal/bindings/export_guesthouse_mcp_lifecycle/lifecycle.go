// Package export_guesthouse_mcp_lifecycle answers the contract's interface lifecycle. The bindings choose its name.
package export_guesthouse_mcp_lifecycle

import (
	"encoding/json"

	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_lifecycle"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/convert"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
)

// Describe says who the server is.
func Describe() wit.ServerInfo {
	info := registry.Served().Info
	return wit.ServerInfo{
		Name: info.Name, Version: info.Version, Title: convert.Text(info.Title), Description: convert.Text(info.Description),
		WebsiteUrl: convert.Text(info.WebsiteURL), Icons: convert.Icons(info.Icons), Instructions: convert.Text(info.Instructions),
	}
}

// Init takes the operator's configuration.
func Init(config string) types.Result[types.Unit, string] {
	if err := registry.Served().Init(json.RawMessage(config)); err != nil {
		return types.Err[types.Unit](err.Error())
	}
	return types.Ok[types.Unit, string](types.Unit{})
}
