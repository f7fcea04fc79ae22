#!/bin/sh
# Makes the bindings in internal/bindings and internal/exports out of ../../wit. Run it after the contract has changed, with
#   cargo install wit-bindgen-cli --version 0.61.1 --locked --no-default-features --features go
#
# Each interface is generated in a world of its own, so that a guest links, and therefore exports, only those whose package
# it imports. The bindings are then written against our own small runtime (internal/wit), which tolerates return areas whose
# size is no multiple of their alignment; the generator's own runtime stops the guest at start because of them.
set -eu
cd "$(dirname "$0")"
module=$(sed -n 's/^module //p' go.mod)
exports="lifecycle tools resources prompts completion"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wit-bindgen --version | grep -q '^wit-bindgen-cli 0\.61\.1$' || { echo "generate.sh needs wit-bindgen-cli 0.61.1" >&2; exit 1; }
mkdir "$work/wit"
cp ../../wit/*.wit "$work/wit"
{
  echo "package guesthouse:mcp@0.1.0;"
  for name in $exports; do echo "world only-$name { import context; import changes; export $name; }"; done
} >"$work/wit/generate.wit"

# Reads generated Go, writes ours: other imports, and a build constraint where functions of the host are named.
adapt() {
  if grep -q '^//go:wasm\(import\|export\)' "$1"; then echo "//go:build wasip1"; echo; fi
  sed -e "s|\"go.bytecodealliance.org/pkg/wit/|\"$module/internal/wit/|" "$1"
}

mkdir -p internal/bindings internal/exports
find internal/bindings internal/exports -name 'wit_*.go' -exec rm {} +
for name in $exports; do
  mkdir "$work/$name"
  (cd "$work/$name" && wit-bindgen go -w "only-$name" --pkg-name "$module/internal/bindings" "$work/wit" >"$work/log" 2>&1) || { cat "$work/log" >&2; exit 1; }
  for from in "$work/$name"/guesthouse_mcp_*; do
    to=internal/bindings/$(basename "$from")
    mkdir -p "$to"
    adapt "$from/wit_bindings.go" >"$work/bindings.go"
    # The worlds share the vocabulary; it must not depend on which of them it was generated for.
    if [ -e "$to/wit_bindings.go" ] && ! cmp -s "$work/bindings.go" "$to/wit_bindings.go"; then
      echo "generate.sh: $to differs between two worlds" >&2
      exit 1
    fi
    cp "$work/bindings.go" "$to/wit_bindings.go"
  done
  mkdir -p "internal/exports/$name"
  adapt "$work/$name/wit_exports/wit_exports.go" | sed "s/^package wit_exports/package $name/" >"internal/exports/$name/wit_exports.go"
done
gofmt -w "$here/internal/bindings" "$here/internal/exports"
# A test compares it with the contract.
(cd ../../wit && LC_ALL=C sha256sum *.wit) >internal/bindings/contract.sha256
