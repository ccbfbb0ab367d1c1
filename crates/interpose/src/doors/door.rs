//! Functions that decide for themselves or get out of the way.
//!
//! The C library's `dlsym`, `dlvsym` and `dlopen` look at their return address: it says whose `RTLD_NEXT`,
//! `RTLD_DEFAULT` or search path is meant. A function that stands before one of them must not call it, but jump
//! to it, with stack and arguments as they came.

/// A call that has come: its arguments, and where it came from. It lies on the stack, in this order.
#[repr(C)]
pub struct Call {
    pub third: usize,
    pub second: usize,
    pub first: usize,
    /// The return address.
    pub caller: usize,
}

/// What becomes of a call. It is returned in two registers.
#[repr(C)]
pub struct Outcome {
    /// 1: the call returns `value`. 0: it goes on at the address `value`, with the arguments that `Call` has.
    is_answer: usize,
    value: usize,
}

impl Outcome {
    pub fn answer<T>(value: *mut T) -> Self {
        Self {
            is_answer: 1,
            value: value as usize,
        }
    }

    pub fn go_on(function: usize) -> Self {
        Self {
            is_answer: 0,
            value: function,
        }
    }
}

/// Exports a function of up to three integers and pointers that asks `decide` what becomes of a call.
macro_rules! door {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) by $decide:path) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> *mut c_void {
            const _: unsafe extern "C" fn(&mut Call) -> Outcome = $decide;
            // At the call the stack is aligned to 16 bytes: the return address and three words are on it.
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov rdi, rsp",
                "call {decide}",
                "mov r11, rdx",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jnz 2f",
                "jmp r11",
                "2:",
                "mov rax, r11",
                "ret",
                ".cfi_endproc",
                decide = sym $decide,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "stp x2, x1, [sp, #-32]!",
                ".cfi_adjust_cfa_offset 32",
                "stp x0, x30, [sp, #16]",
                ".cfi_rel_offset x30, 24",
                "mov x0, sp",
                "bl {decide}",
                "mov x16, x1",
                "mov x17, x0",
                "ldp x0, x30, [sp, #16]",
                ".cfi_restore x30",
                "ldp x2, x1, [sp], #32",
                ".cfi_adjust_cfa_offset -32",
                "cbnz x17, 2f",
                "br x16",
                "2:",
                "mov x0, x16",
                "ret",
                ".cfi_endproc",
                decide = sym $decide,
            );
        }
    };
}
pub(super) use door;
