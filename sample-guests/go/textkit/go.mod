module github.com/guesthouse-mcp/guesthouse/sample-guests/go/textkit

go 1.24

require (
	github.com/guesthouse-mcp/guesthouse/guest-sdk/go v0.1.0
	golang.org/x/text v0.28.0
)

replace github.com/guesthouse-mcp/guesthouse/guest-sdk/go => ../../../guest-sdk/go
