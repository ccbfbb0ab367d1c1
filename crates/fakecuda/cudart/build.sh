#!/usr/bin/env bash
# Builds the runtime double: build.sh OUT_DIR [CUDA_13_INCLUDE [CUDA_12_INCLUDE]]
#
#   OUT_DIR/libcudart.so.13, libcudart.so (a link to it), libcudart_static.a    for `nvcc -L OUT_DIR`
#   OUT_DIR/libcudart.so.12                                                      loads beside the other
#   OUT_DIR/cuda12/libcudart.so (a link), cuda12/libcudart_static.a             to link with version 12
#
# The includes are those of the public CUDA headers, by default in the toolkit that scripts/cuda-toolkit
# makes. Without those of version 12 only version 13 is built. Every name that NVIDIA's library exports
# exists: those that src/ does not implement answer cudaErrorNotSupported.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -lt 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
toolkit=${LUMA_CUDA_TOOLKIT:-$here/../../../target/cuda-toolkit/cu13}
include13=${2:-$toolkit/include}
include12=${3:-$toolkit/../cuda_runtime/include}
[ -e "$include12/cuda_runtime_api.h" ] || include12=none
cxx=${CXX:-g++}
cc=${CC:-gcc}

# What was built last has this list of inputs beside it, and is newer than all sources: nothing to do.
inputs="$include13 $include12 $cxx $cc"
if [ -e "$out/.inputs" ] && [ "$(cat "$out/.inputs")" = "$inputs" ] &&
    [ -z "$(find "$here" -newer "$out/.inputs" -print -quit)" ]; then
    exit
fi

work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# One translation unit: the headers take longer to read than the sources.
for source in "$here"/src/*.cpp; do
    echo "#include \"$source\""
done >"$work/all.cpp"

# The names that `object` defines, sorted as the lists are.
defined() { nm --defined-only --extern-only "$1" | awk '$2 == "T" { print $3 }' | LC_ALL=C sort -u | grep -E '^_*cuda'; }

# stubs NAMES OBJECT: C for the names of the list that the object lacks.
stubs() {
    defined "$2" >"$work/implemented"
    if [ -n "$(LC_ALL=C comm -13 "$1" "$work/implemented")" ]; then
        echo "build.sh: src/ defines names that $(basename "$1") does not list:" >&2
        LC_ALL=C comm -13 "$1" "$work/implemented" >&2
        return 1
    fi
    echo 'int rt_unsupported(const char *name);'
    LC_ALL=C comm -23 "$1" "$work/implemented" | sed 's/.*/int &(void) { return rt_unsupported("&"); }/'
}

# objects MAJOR VISIBILITY INCLUDE...: compiles $work/runtime.o and $work/stubs.o
objects() {
    local major=$1 visibility=$2
    shift 2
    local flags=(-O1 -g1 -fPIC -fvisibility="$visibility" -ffunction-sections -Wall -Wextra)
    "$cxx" -std=c++17 "${flags[@]}" -fno-exceptions -fno-rtti -fno-threadsafe-statics \
        "${@/#/-isystem}" -c "$work/all.cpp" -o "$work/runtime.o"
    stubs "$here/names/libcudart.so.$major.txt" "$work/runtime.o" >"$work/stubs.c"
    "$cc" "${flags[@]}" -c "$work/stubs.c" -o "$work/stubs.o"
}

# version MAJOR LINK_DIR INCLUDE...
version() {
    local major=$1 link_dir=$2
    shift 2
    mkdir -p "$link_dir"
    objects "$major" default "$@"
    echo "libcudart.so.$major { global: cuda*; __cuda*; local: *; };" >"$work/version"
    # Linked as C: the runtime needs no C++ library.
    "$cc" -shared -o "$work/libcudart.so.$major" "$work/runtime.o" "$work/stubs.o" -Wl,-soname,"libcudart.so.$major" \
        -Wl,--version-script="$work/version" -Wl,-z,defs -Wl,--gc-sections -ldl -lpthread
    mv "$work/libcudart.so.$major" "$out/"

    # As in NVIDIA's archive the names are hidden, so that a library linked with it keeps them to itself.
    objects "$major" hidden "$@"
    rm -f "$work/libcudart_static.a"
    ar rcs "$work/libcudart_static.a" "$work/runtime.o" "$work/stubs.o"
    mv "$work/libcudart_static.a" "$link_dir/"
}

version 13 "$out" "$include13"
ln -sfn libcudart.so.13 "$out/libcudart.so"
if [ "$include12" != none ]; then
    # The headers' crt/ comes with the compiler, which is version 13's here.
    version 12 "$out/cuda12" "$include12" "$include13"
    ln -sfn ../libcudart.so.12 "$out/cuda12/libcudart.so"
fi
echo "$inputs" >"$out/.inputs"
