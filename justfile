# Names for the commands that are used often; each is plain cargo underneath.

# Build the sample guests and serve them.
up:
    cargo run --release -- up sample-guests

# Everything that `cargo test` runs.
test:
    cargo test --workspace

# Formatting and lints, as CI checks them.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

fmt:
    cargo fmt --all

# The official conformance suite against the conformance guest (needs npm).
conformance:
    tests/conformance/run

# The official TypeScript and Rust clients against the sample guests.
clients:
    tests/clients/run

# Whether the process grows: 200,000 calls, 2,000 loads and unloads of guests.
soak calls="200000" loads="2000":
    SOAK_CALLS={{calls}} SOAK_LOADS={{loads}} cargo test -p guesthouse --test soak -- --nocapture

# What callers of one guest notice of calls of another that never end (needs wrk and a quiet machine).
loops:
    cargo build --release
    tests/bench/loops

# Swaps under load, so many and so many milliseconds apart: 200 in a minute. Prints what calls took.
swaps count="200" apart="300":
    SWAPS={{count}} SWAP_MS={{apart}} cargo test --release -p tests --test it -- --nocapture swap::load

# One fuzz target for so many seconds; the targets are the files of host/protocol/fuzz/fuzz_targets.
fuzz target seconds="600":
    host/protocol/fuzz/run {{target}} {{seconds}}

# Rewrite the protocol transcripts from what the code does now; read the diff before committing it.
bless:
    BLESS=1 cargo test -p guesthouse-protocol

# What CI runs.
ci:
    .ci/run
