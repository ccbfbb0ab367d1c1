//! Structures of copies and arrays.

/// `CU_MEMORYTYPE_HOST`.
pub const TYPE_HOST: u32 = 1;
/// `CU_MEMORYTYPE_DEVICE`.
pub const TYPE_DEVICE: u32 = 2;
/// `CU_MEMORYTYPE_ARRAY`.
pub const TYPE_ARRAY: u32 = 3;
/// `CU_MEMORYTYPE_UNIFIED`.
pub const TYPE_UNIFIED: u32 = 4;

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Side2D {
    pub x_bytes: usize,
    pub y: usize,
    pub memory_type: u32,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    pub source: Side2D,
    pub destination: Side2D,
    pub width_bytes: usize,
    pub height: usize,
}

/// One side of `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Side3D {
    pub x_bytes: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    pub memory_type: u32,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    /// Reserved, other than in the peer form.
    pub context: u64,
    pub pitch: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    pub source: Side3D,
    pub destination: Side3D,
    pub width_bytes: usize,
    pub height: usize,
    pub depth: usize,
}

impl From<Side2D> for Side3D {
    fn from(side: Side2D) -> Self {
        Self {
            x_bytes: side.x_bytes,
            y: side.y,
            z: 0,
            level: 0,
            memory_type: side.memory_type,
            host: side.host,
            device: side.device,
            array: side.array,
            context: 0,
            pitch: side.pitch,
            height: 0,
        }
    }
}

impl From<Copy2D> for Copy3D {
    fn from(copy: Copy2D) -> Self {
        Self {
            source: copy.source.into(),
            destination: copy.destination.into(),
            width_bytes: copy.width_bytes,
            height: copy.height,
            depth: 1,
        }
    }
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayDescriptor {
    pub width: usize,
    pub height: usize,
    pub format: u32,
    pub channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Array3DDescriptor {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: u32,
    pub channels: u32,
    pub flags: u32,
}

/// `CUmemcpyAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyAttributes {
    pub source_order: u32,
    /// Where the source should be: a `CUmemLocation`, kind and number.
    pub source_hint: [u32; 2],
    pub destination_hint: [u32; 2],
    pub flags: u32,
}

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`.
pub const ORDER_STREAM: u32 = 1;
/// `CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL`.
pub const ORDER_DURING_CALL: u32 = 2;
/// `CU_MEMCPY_SRC_ACCESS_ORDER_ANY`.
pub const ORDER_ANY: u32 = 3;

/// `CU_MEMCPY_OPERAND_TYPE_POINTER`.
pub const OPERAND_POINTER: u32 = 1;
/// `CU_MEMCPY_OPERAND_TYPE_ARRAY`.
pub const OPERAND_ARRAY: u32 = 2;

/// `CUmemcpy3DOperand`. What the words mean depends on the kind: address, row length and layer height
/// in elements, location; or array and offsets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub kind: u32,
    pub words: [u64; 4],
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BatchCopy {
    pub source: Operand,
    pub destination: Operand,
    /// Width, height and depth in elements.
    pub extent: [usize; 3],
    pub source_order: u32,
    pub flags: u32,
}

const _: () = {
    assert!(size_of::<Copy2D>() == 128);
    assert!(size_of::<Copy3D>() == 200);
    assert!(size_of::<ArrayDescriptor>() == 24);
    assert!(size_of::<Array3DDescriptor>() == 40);
    assert!(size_of::<CopyAttributes>() == 24);
    assert!(size_of::<Operand>() == 40);
    assert!(size_of::<BatchCopy>() == 112);
};
