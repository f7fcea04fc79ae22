#!/usr/bin/env bash
# Makes a private rustc with std for one WebAssembly target in PREFIX, from Debian's packages, where rustup cannot download the target.
# usage: setup.sh PREFIX TARGET
# Needs apt-get and dpkg, cargo, and the rust-lld and wasm-component-ld that come with every toolchain of rustup. No root, and nothing
# outside PREFIX is touched; as root, the package lists are refreshed.
set -euo pipefail
PREFIX=$1 TARGET=$2
here=$(cd "$(dirname "$0")" && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
say() { echo "  $*" >&2; }
fail() { echo "error: $*" >&2; exit 1; }

[ "$host" = x86_64-unknown-linux-gnu ] || fail "the fallback toolchain exists for x86_64-unknown-linux-gnu only, and this is $host"
tools=$(cd / && rustc --print sysroot)/lib/rustlib/$host/bin
[ -x "$tools/rust-lld" ] && [ -x "$tools/wasm-component-ld" ] || fail "$tools lacks rust-lld or wasm-component-ld; install Rust with rustup"

# 1. The compiler. It is made beside PREFIX and moved there whole, so that PREFIX is complete or absent.
if [ ! -x "$PREFIX/bin/rustc" ]; then
  new=$PREFIX.new
  rm -rf "$new" "$PREFIX"; mkdir -p "$new/debs" "$new/bin"
  cd "$new/debs"
  say "downloading Debian's rustc-web (140 MB)"
  if [ "$(id -u)" = 0 ]; then apt-get -qq update || say "the package lists could not be refreshed; trying with those that are there"; fi
  version=$(apt-cache show --no-all-versions rustc-web | sed -n 's/^Version: //p')
  [ -n "$version" ] || fail "this system's package lists have no rustc-web (Debian 12 has it)"
  # The runtime std and the libLLVM that belong to this rustc.
  std=$(apt-cache show --no-all-versions libstd-rust-web-dev | sed -n 's/^Depends: \(libstd-rust-web-[0-9.]*\) .*/\1/p')
  llvm=$(apt-cache show --no-all-versions "$std" | grep -o 'libllvm[0-9]*' | head -1)
  apt-get -qq -o APT::Sandbox::User=root download \
    "rustc-web=$version" "rust-web-src=$version" "libstd-rust-web-dev=$version" "$std=$version" "$llvm" wasi-libc
  for deb in rustc-web_*.deb libstd-rust-web*.deb libllvm*.deb wasi-libc*.deb; do dpkg -x "$deb" "$new"; done
  dpkg --fsys-tarfile rust-web-src_*.deb | tar -x -C "$new" --wildcards './usr/lib/rustlib/*' './usr/src/rustc-*/library/*'
  cd "$new"; rm -rf "$new/debs" "$new/usr/share"
  llvm_dir=$(cd "$new/usr/lib" && echo llvm-*/lib)
  for tool in rustc rustdoc; do
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s:%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec %s "$@"\n' \
      "$PREFIX/usr/lib/x86_64-linux-gnu" "$PREFIX/usr/lib/$llvm_dir" "$PREFIX/usr/bin/$tool" > "$new/bin/$tool"
    chmod +x "$new/bin/$tool"
  done
  # A symlink, because rust-lld finds its libLLVM by where it lies.
  ln -sfn "$tools" "$new/usr/lib/rustlib/$host/bin"
  mv "$new" "$PREFIX"
fi

# 2. std for the target, put where a toolchain has it, so that later builds need no unstable flag.
lib=$PREFIX/usr/lib/rustlib/$TARGET/lib
if [ ! -d "$lib" ]; then
  say "compiling std for $TARGET (a minute or two)"
  work=$PREFIX/work-$TARGET
  rm -rf "$work"; mkdir -p "$work/src" "$work/lib/self-contained"
  cd "$work"
  printf '[package]\nname = "seed"\nversion = "0.0.0"\nedition = "2021"\n[lib]\n[profile.release]\npanic = "abort"\n[workspace]\n' > Cargo.toml
  : > src/lib.rs
  # Bitcode, because guests are linked with LTO; the remapping, so that guests do not depend on where PREFIX is.
  RUSTC_BOOTSTRAP=1 RUSTC=$PREFIX/bin/rustc CARGO_TARGET_DIR=$work/target \
    RUSTFLAGS="-Cembed-bitcode=yes --remap-path-prefix=$PREFIX/usr/lib/rustlib/src/rust=/rust" \
    cargo build -q --release --target "$TARGET" -Z build-std=std,panic_abort
  cp "target/$TARGET"/release/deps/lib*.rlib lib/; rm -f lib/libseed-*.rlib
  case $TARGET in wasm32-wasi*)
    cp "$PREFIX"/usr/lib/wasm32-wasi/{crt1-command.o,crt1-reactor.o,libc.a} lib/self-contained/
    # Debian's libc of 2022 lacks what std::thread names.
    "$PREFIX/bin/rustc" --edition 2024 --target "$TARGET" -Cpanic=abort -O --emit=obj --crate-type=lib --sysroot "$PREFIX/usr" \
      -L "$work/lib" -o stubs.o "$here/pthread_stubs.rs"
    ar rS lib/self-contained/libc.a stubs.o;;
  esac
  mkdir -p "$(dirname "$lib")"; mv lib "$lib"
  cd "$PREFIX"; rm -rf "$work"
fi
say "ready: $("$PREFIX/bin/rustc" -V)"
