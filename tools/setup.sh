# setup.sh - what tools/run and tools/test share: packages and a build folder. Sourced, not run.

BUILD_PACKAGES="cmake ninja-build gcc libc6-dev libev-dev libc-ares-dev zlib1g-dev libpcre2-dev
    libxxhash-dev"
TEST_PACKAGES="$BUILD_PACKAGES libcmocka-dev python3 iproute2 nftables gnuplot-nox"
FUZZ_PACKAGES="clang libclang-rt-dev"

say() {
    printf '%s\n' "$*" >&2
}

# Asks dpkg first, so that a machine which has everything never waits for apt-get.
need_packages() {
    local missing="" package
    for package in "$@"; do
        dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    local as_root=""
    [ "$(id -u)" = 0 ] || as_root=sudo
    say "installing:$missing"
    $as_root apt-get update -q >&2 &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends $missing >&2 && return 0
    say "apt-get could not install:$missing"
    return 1
}

# build FOLDER [cmake options]: configured once, then only what changed is built.
build() {
    local folder=$1
    shift
    mkdir -p "$folder"
    [ -f "$folder/build.ninja" ] ||
        logged "$folder/configure.log" cmake -S . -B "$folder" -G Ninja "$@" || return 1
    logged "$folder/build.log" ninja -C "$folder"
}

# Quiet while all is well; the end of the log when it is not.
logged() {
    local log=$1
    shift
    "$@" > "$log" 2>&1 || { tail -n 100 "$log" >&2; return 1; }
}
