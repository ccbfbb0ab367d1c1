//! The structures of the interface lie in memory as the header has them.

use crate::support;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::mem::{align_of, offset_of, size_of};
use std::path::Path;
use std::process::Command;

/// The library's own source.
#[path = "../../src/abi/mod.rs"]
#[allow(dead_code)]
mod abi;

use abi::copy::{
    Array3DDescriptor, ArrayDescriptor, BatchCopy, Copy2D, Copy3D, CopyAttributes, Operand,
};
use abi::device::{ContextParameters, DeviceProperties, ExecAffinity};
use abi::graph::{
    AllocationNode, ChildNode, CopyNode, EventNode, FreeNode, HostNode, HostNodeV1, KernelNode,
    KernelNodeV1, NodeParameters, SetNode, SetNodeV1,
};
use abi::launch::{Launch, LaunchAttribute, LaunchConfig};
use abi::memory::{
    MemAccessDesc, MemAllocationProp, MemLocation, MemPoolProps, Opaque64, PeerTokens,
};

/// A structure: its C type, size and alignment, and its fields with their offsets.
struct Layout {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<(&'static str, usize)>,
}

/// Lists structures with all of their fields; `inner` ones with fields of fields.
macro_rules! layouts {
    ($($type:ident = $name:literal { $($field:ident = $known:literal),* $(,)? })*) => {
        vec![$({
            // Does not compile if a field is not listed.
            #[allow(dead_code)]
            fn all_fields(it: &$type) {
                let $type { $($field: _),* } = it;
            }
            layouts!(@layout $type, $name, $($known, $field;)*)
        },)*]
    };
    (inner $($type:ident = $name:literal { $($($part:ident).+ = $known:literal),* $(,)? })*) => {
        vec![$(layouts!(@layout $type, $name, $($known, $($part).+;)*),)*]
    };
    (@layout $type:ident, $name:literal, $($known:literal, $($part:ident).+;)*) => {
        Layout {
            name: $name,
            size: size_of::<$type>(),
            align: align_of::<$type>(),
            fields: vec![$(($known, offset_of!($type, $($part).+))),*],
        }
    };
}

fn layouts() -> Vec<Layout> {
    let mut all = layouts! {
        DeviceProperties = "CUdevprop" {
            max_threads_per_block = "maxThreadsPerBlock",
            max_threads_dim = "maxThreadsDim",
            max_grid_size = "maxGridSize",
            shared_memory_per_block = "sharedMemPerBlock",
            total_constant_memory = "totalConstantMemory",
            simd_width = "SIMDWidth",
            memory_pitch = "memPitch",
            registers_per_block = "regsPerBlock",
            clock_rate = "clockRate",
            texture_alignment = "textureAlign",
        }
        ContextParameters = "CUctxCreateParams" {
            affinities = "execAffinityParams",
            affinity_count = "numExecAffinityParams",
            graphics = "cigParams",
        }
        ExecAffinity = "CUexecAffinityParam" {
            kind = "type",
            multiprocessors = "param.smCount.val",
        }
        MemLocation = "CUmemLocation" { kind = "type", id = "id" }
        MemAllocationProp = "CUmemAllocationProp" {
            kind = "type",
            handle_types = "requestedHandleTypes",
            location = "location",
            win32 = "win32HandleMetaData",
            compression = "allocFlags.compressionType",
            gpu_direct_rdma = "allocFlags.gpuDirectRDMACapable",
            usage = "allocFlags.usage",
            reserved = "allocFlags.reserved",
        }
        MemAccessDesc = "CUmemAccessDesc" { location = "location", flags = "flags" }
        MemPoolProps = "CUmemPoolProps" {
            kind = "allocType",
            handle_types = "handleTypes",
            location = "location",
            win32 = "win32SecurityAttributes",
            max_size = "maxSize",
            usage = "usage",
            gpu_direct_rdma = "gpuDirectRDMACapable",
            reserved = "reserved",
        }
        PeerTokens = "CUDA_POINTER_ATTRIBUTE_P2P_TOKENS" {
            peer = "p2pToken",
            space = "vaSpaceToken",
        }
        ArrayDescriptor = "CUDA_ARRAY_DESCRIPTOR" {
            width = "Width",
            height = "Height",
            format = "Format",
            channels = "NumChannels",
        }
        Array3DDescriptor = "CUDA_ARRAY3D_DESCRIPTOR" {
            width = "Width",
            height = "Height",
            depth = "Depth",
            format = "Format",
            channels = "NumChannels",
            flags = "Flags",
        }
        CopyAttributes = "CUmemcpyAttributes" {
            source_order = "srcAccessOrder",
            source_hint = "srcLocHint",
            destination_hint = "dstLocHint",
            flags = "flags",
        }
        Operand = "CUmemcpy3DOperand" { kind = "type", words = "op" }
        BatchCopy = "CUDA_MEMCPY3D_BATCH_OP" {
            source = "src",
            destination = "dst",
            extent = "extent",
            source_order = "srcAccessOrder",
            flags = "flags",
        }
        LaunchConfig = "CUlaunchConfig" {
            grid = "gridDimX",
            block = "blockDimX",
            shared_bytes = "sharedMemBytes",
            stream = "hStream",
            attributes = "attrs",
            attribute_count = "numAttrs",
        }
        KernelNodeV1 = "CUDA_KERNEL_NODE_PARAMS_v1" {
            function = "func",
            grid = "gridDimX",
            block = "blockDimX",
            shared_bytes = "sharedMemBytes",
            parameters = "kernelParams",
            extra = "extra",
        }
        CopyNode = "CUDA_MEMCPY_NODE_PARAMS" {
            flags = "flags",
            reserved = "reserved",
            context = "copyCtx",
            copy = "copyParams",
        }
        SetNodeV1 = "CUDA_MEMSET_NODE_PARAMS_v1" {
            address = "dst",
            pitch = "pitch",
            value = "value",
            element_bytes = "elementSize",
            width = "width",
            height = "height",
        }
        HostNodeV1 = "CUDA_HOST_NODE_PARAMS_v1" { function = "fn", data = "userData" }
        ChildNode = "CUDA_CHILD_GRAPH_NODE_PARAMS" { graph = "graph", ownership = "ownership" }
        EventNode = "CUDA_EVENT_RECORD_NODE_PARAMS" { event = "event", context = "ctx" }
        AllocationNode = "CUDA_MEM_ALLOC_NODE_PARAMS" {
            pool = "poolProps",
            access = "accessDescs",
            access_count = "accessDescCount",
            bytes = "bytesize",
            address = "dptr",
        }
        FreeNode = "CUDA_MEM_FREE_NODE_PARAMS" { address = "dptr" }
        NodeParameters = "CUgraphNodeParams" {
            node_type = "type",
            reserved = "reserved0",
            of = "kernel",
            reserved_end = "reserved2",
        }
        LaunchAttribute = "CUlaunchAttribute" { id = "id", value = "value" }
        Launch = "fakecuda_launch_t" {
            struct_size = "struct_size",
            name = "name",
            grid = "grid",
            block = "block",
            shared_bytes = "shared_bytes",
            stream = "stream",
            params = "params",
            nparams = "nparams",
        }
    };
    all.extend(layouts! { inner
        Opaque64 = "CUipcMemHandle" {}
        Opaque64 = "CUmemPoolPtrExportData" {}
        Copy2D = "CUDA_MEMCPY2D" {
            source.x_bytes = "srcXInBytes",
            source.y = "srcY",
            source.memory_type = "srcMemoryType",
            source.host = "srcHost",
            source.device = "srcDevice",
            source.array = "srcArray",
            source.pitch = "srcPitch",
            destination.x_bytes = "dstXInBytes",
            destination.y = "dstY",
            destination.memory_type = "dstMemoryType",
            destination.host = "dstHost",
            destination.device = "dstDevice",
            destination.array = "dstArray",
            destination.pitch = "dstPitch",
            width_bytes = "WidthInBytes",
            height = "Height",
        }
        Copy3D = "CUDA_MEMCPY3D_PEER" {
            source.x_bytes = "srcXInBytes",
            source.y = "srcY",
            source.z = "srcZ",
            source.level = "srcLOD",
            source.memory_type = "srcMemoryType",
            source.host = "srcHost",
            source.device = "srcDevice",
            source.array = "srcArray",
            source.context = "srcContext",
            source.pitch = "srcPitch",
            source.height = "srcHeight",
            destination.x_bytes = "dstXInBytes",
            destination.y = "dstY",
            destination.z = "dstZ",
            destination.level = "dstLOD",
            destination.memory_type = "dstMemoryType",
            destination.host = "dstHost",
            destination.device = "dstDevice",
            destination.array = "dstArray",
            destination.context = "dstContext",
            destination.pitch = "dstPitch",
            destination.height = "dstHeight",
            width_bytes = "WidthInBytes",
            height = "Height",
            depth = "Depth",
        }
        KernelNode = "CUDA_KERNEL_NODE_PARAMS_v2" {
            v1.function = "func",
            v1.extra = "extra",
            kernel = "kern",
            context = "ctx",
        }
        KernelNode = "CUDA_KERNEL_NODE_PARAMS_v3" {
            v1.function = "func",
            v1.extra = "extra",
            kernel = "kern",
            context = "ctx",
        }
        SetNode = "CUDA_MEMSET_NODE_PARAMS_v2" {
            v1.address = "dst",
            v1.height = "height",
            context = "ctx",
        }
        HostNode = "CUDA_HOST_NODE_PARAMS_v2" {
            v1.function = "fn",
            v1.data = "userData",
            synchronization = "syncMode",
            context = "ctx",
        }
        Copy3D = "CUDA_MEMCPY3D" {
            source.context = "reserved0",
            source.pitch = "srcPitch",
            destination.x_bytes = "dstXInBytes",
            destination.context = "reserved1",
            depth = "Depth",
        }
    });
    all
}

/// A program that prints the size and alignment of each type, and each field's offset.
fn program(layouts: &[Layout]) -> String {
    let mut source = String::from(
        "#include <cuda.h>\n#include <stddef.h>\n#include <stdio.h>\n#include \"fakecuda.h\"\nint main(void) {\n",
    );
    for Layout { name, fields, .. } in layouts {
        for (what, value) in [("size", "sizeof"), ("align", "_Alignof")] {
            writeln!(
                source,
                "  printf(\"{name} {what} %zu\\n\", {value}({name}));"
            )
            .expect("a string can be written to");
        }
        for (field, _) in fields {
            writeln!(
                source,
                "  printf(\"{name} {field} %zu\\n\", offsetof({name}, {field}));"
            )
            .expect("a string can be written to");
        }
    }
    source + "  return 0;\n}\n"
}

#[test]
fn structures_lie_as_the_header_has_them() {
    let test = "layout of structures";
    let Some(headers) = support::headers(test) else {
        return;
    };
    if !support::has("cc") {
        return support::tools::skipped(test, "no C compiler");
    }
    let layouts = layouts();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    fs::write(&source, program(&layouts)).expect("the program can be written");
    support::succeed(
        Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&binary, &source])
            .arg("-I")
            .arg(headers)
            .arg("-I")
            .arg(support::package().join("include"))
            .arg("-ldl"),
    );
    let output = support::succeed(&mut Command::new(binary));
    let known: BTreeMap<&str, usize> = output
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(what, value)| (what, value.parse().expect("a number")))
        .collect();
    for layout in layouts {
        let own = [("size", layout.size), ("align", layout.align)];
        for (what, value) in own.into_iter().chain(layout.fields) {
            let name = format!("{} {what}", layout.name);
            assert_eq!(Some(&value), known.get(name.as_str()), "{name}");
        }
    }
}

/// What the structures above are made of, and are checked as their fields.
const PARTS: &[&str] = &["Side2D", "Side3D", "NodeUnion"];

#[test]
fn no_structure_is_left_out() {
    let listed = fs::read_to_string(support::package().join("tests/interface/layout.rs"))
        .expect("this file is there");
    let folder = fs::read_dir(support::package().join("src/abi")).expect("the sources are there");
    let mut seen = 0;
    for file in folder {
        let path = file.expect("the sources can be listed").path();
        let source = fs::read_to_string(&path).expect("the sources can be read");
        for line in source.lines() {
            let Some(rest) = ["pub struct ", "pub union "]
                .iter()
                .find_map(|start| line.strip_prefix(start))
            else {
                continue;
            };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            let is_listed = listed.contains(&format!(" {name} = \"")) || PARTS.contains(&&*name);
            assert!(is_listed, "{name} of {path:?}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} structures");
}
