#!/usr/bin/env python3
"""Writes ../src/names.rs: which exported symbol serves a name from which version on.

    generate.py INCLUDE_FOLDER [FILE]

INCLUDE_FOLDER holds the toolkit's cuda.h and its *Typedefs.h. Without FILE the text goes to
standard output.

The typedefs say at which version each form of a name came (PFN_cuMemAlloc_v3020, and with _ptsz or
_ptds for the forms whose null stream is the thread's own). The first form's symbol is the name
itself, the next one's ends in _v2, and so on; a per-thread form's symbol is that of the form that
was current then, with its ending. cuda.h must know each symbol that comes out so.
"""

import re
import sys
from pathlib import Path

TYPEDEFS = [
    "cudaTypedefs.h",
    "cudaProfilerTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
]
# Headers that name symbols; those beside cuda.h are not in every toolkit package.
HEADERS = ["cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"]
# Only on Windows, and a function of cuda.h's own that calls the driver's.
ELSEWHERE = {"cuWGLGetDevice", "cuGetProcAddress_v2_ptsz"}
# cuda.h maps the bare name to a symbol of another name from the version in which its list of
# parameters became that one's. The typedefs do not tell.
RENAMED = [("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags")]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def forms(include):
    """All (name, ending) with the versions at which they came."""
    found = {}
    for header in TYPEDEFS:
        text = without_comments((include / header).read_text())
        for name, version, ending in re.findall(
            r"\bPFN_(cu\w+?)_v(\d+)((?:_pt[sd][sz])?)\)\s*\(", text
        ):
            if name not in ELSEWHERE:
                found.setdefault((name, ending), set()).add(int(version))
    return {key: sorted(versions) for key, versions in found.items()}


def symbols(include):
    """The symbols that the headers name, by declarations or as what a macro stands for."""
    known = set()
    for header in HEADERS:
        if not (include / header).exists():
            continue
        text = without_comments((include / header).read_text())
        known.update(re.findall(r"\bCUDAAPI\s+(cu\w+)\s*\(", text))
        for value in re.findall(r"#\s*define\s+cu\w+[ \t]+([^\n]+)", text):
            wrapped = re.match(r"__CUDA_API_(PTDS|PTSZ)\((cu\w+)\)", value)
            if wrapped:
                ending = "_" + wrapped.group(1).lower()
                known.update([wrapped.group(2), wrapped.group(2) + ending])
            else:
                known.update(re.findall(r"\bcu[A-Z]\w*", value))
    return known


def table(include):
    """Rows of name, first version, ending, symbol."""
    found = forms(include)
    rows = []
    for (name, ending), versions in found.items():
        legacy = found[(name, "")]
        for version in versions:
            # The form that was current at this version.
            form = sum(1 for other in legacy if other <= version)
            base = name if form == 1 else f"{name}_v{form}"
            rows.append((name, version, ending, base + ending))
    rows += [(name, version, "", symbol) for name, version, symbol in RENAMED]
    return sorted(rows)


def main():
    include = Path(sys.argv[1])
    rows = table(include)
    known = symbols(include)
    # Graphics interoperation has its symbols in headers that need not be there.
    optional = re.compile("GL|VDPAU|Profiler")
    unknown = [row for row in rows if row[3] not in known and not optional.search(row[0])]
    missing = known - {row[3] for row in rows} - {row[0] for row in rows} - ELSEWHERE
    missing = {symbol for symbol in missing if re.match("cu[A-Z]", symbol)}
    if unknown or missing:
        sys.exit(f"symbols that cuda.h does not know: {unknown}\nof no version: {sorted(missing)}")

    lines = [
        "//! Which symbol serves a name from which version on. Written by names/generate.py.",
        "",
        "/// A form of a function.",
        "#[derive(Clone, Copy, Debug)]",
        "pub struct Form {",
        "    /// What `cuGetProcAddress` is asked for.",
        "    pub name: &'static str,",
        "    /// The first version at which the name means this form.",
        "    pub version: i32,",
        "    /// The null stream is the calling thread's own.",
        "    pub per_thread: bool,",
        "    /// The exported symbol.",
        "    pub symbol: &'static str,",
        "}",
        "",
        "const fn form(name: &'static str, version: i32, per_thread: bool, symbol: &'static str) -> Form {",
        "    Form {",
        "        name,",
        "        version,",
        "        per_thread,",
        "        symbol,",
        "    }",
        "}",
        "",
        "/// All forms, in the order of names and versions.",
        "#[rustfmt::skip]",
        "pub static FORMS: &[Form] = &[",
    ]
    for name, version, ending, symbol in rows:
        per_thread = "true" if ending else "false"
        lines.append(f'    form("{name}", {version}, {per_thread}, "{symbol}"),')
    lines += ["];", ""]
    text = "\n".join(lines)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
