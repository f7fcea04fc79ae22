//! Integration tests: the whole host, over every transport.

mod tidy;
