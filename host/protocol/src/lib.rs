//! The Model Context Protocol as a value-in, value-out machine.
