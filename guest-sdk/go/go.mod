module github.com/guesthouse-mcp/guesthouse/guest-sdk/go

go 1.24
