// Package export_guesthouse_mcp_resources answers the contract's interface resources. The bindings choose its name.
package export_guesthouse_mcp_resources

import (
	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_resources"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/convert"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/running"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// ListResources lists all resources on one page.
func ListResources(types.Option[string]) types.Result[wit.ResourcePage, guesthouse_mcp_types.Error] {
	entries := []guesthouse_mcp_types.ResourceEntry{}
	for _, r := range registry.Served().Resources {
		entries = append(entries, convert.Resource(mcp.Resource{
			URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType,
			Size: r.Size, Icons: r.Icons, Annotations: r.Annotations, Meta: r.Meta,
		}))
	}
	return types.Ok[wit.ResourcePage, guesthouse_mcp_types.Error](wit.ResourcePage{Resources: entries})
}

// ListTemplates lists all templates on one page.
func ListTemplates(types.Option[string]) types.Result[wit.TemplatePage, guesthouse_mcp_types.Error] {
	templates := []wit.ResourceTemplate{}
	for _, t := range registry.Served().Templates {
		templates = append(templates, wit.ResourceTemplate{
			UriTemplate: t.URITemplate, Name: t.Name, Title: convert.Text(t.Title), Description: convert.Text(t.Description),
			MimeType: convert.Text(t.MIMEType), Icons: convert.Icons(t.Icons), Annotations: convert.Annotations(t.Annotations),
			Meta: convert.JSON(t.Meta),
		})
	}
	return types.Ok[wit.TemplatePage, guesthouse_mcp_types.Error](wit.TemplatePage{Templates: templates})
}

// ReadResource reads a resource.
func ReadResource(uri string) types.Result[wit.ReadOutcome, guesthouse_mcp_types.Error] {
	read, err := registry.Served().ReadResource(running.Here(), uri)
	if err != nil {
		return types.Err[wit.ReadOutcome](convert.Error(err))
	}
	contents := []guesthouse_mcp_types.ResourceContents{}
	for _, c := range read {
		contents = append(contents, convert.ResourceContents(c, uri))
	}
	return types.Ok[wit.ReadOutcome, guesthouse_mcp_types.Error](wit.MakeReadOutcomeComplete(wit.ReadResult{Contents: contents}))
}
