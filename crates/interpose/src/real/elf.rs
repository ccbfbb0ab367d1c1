//! Finding a function of a loaded library in the library's own tables, with no help of `dlsym`.

use libc::{Elf64_Phdr, Elf64_Sym, dl_phdr_info};
use std::ffi::{CStr, c_char, c_int, c_void};

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const STT_FUNC: u8 = 2;
/// In an entry of the version table: a version that nobody gets who does not ask for it.
const HIDDEN: u16 = 0x8000;

/// A library that is loaded.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    base: usize,
    headers: &'a [Elf64_Phdr],
    name: &'a CStr,
}

/// Shows each loaded library to `visit`, until that gives true. Allocates nothing.
pub fn each<F: FnMut(Object) -> bool>(mut visit: F) {
    unsafe extern "C" fn show<F: FnMut(Object) -> bool>(
        info: *mut dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker's description of a library, which stays as it is during the call.
        let info = unsafe { &*info };
        if info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
            return 0;
        }
        let object = Object {
            base: info.dlpi_addr as usize,
            // SAFETY: so many headers lie there, for as long as the library is loaded.
            headers: unsafe {
                std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum))
            },
            // SAFETY: a string, for as long as the library is loaded.
            name: unsafe { CStr::from_ptr(info.dlpi_name) },
        };
        // SAFETY: what `each` handed over, and nobody else uses it.
        let visit = unsafe { &mut *visit.cast::<F>() };
        c_int::from(visit(object))
    }
    // SAFETY: the function is of the type that is asked for, and gets what it expects.
    unsafe { libc::dl_iterate_phdr(Some(show::<F>), (&raw mut visit).cast()) };
}

impl Object<'_> {
    /// The last part of its path; empty for the program.
    pub fn file(&self) -> &[u8] {
        let path = self.name.to_bytes();
        let start = path.iter().rposition(|&byte| byte == b'/');
        &path[start.map_or(0, |slash| slash + 1)..]
    }

    /// Its first address, and the one after its last, if `address` lies in it.
    pub fn bounds_around(&self, address: usize) -> Option<(usize, usize)> {
        let loaded = || self.headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        let start = |header: &Elf64_Phdr| self.base.wrapping_add(header.p_vaddr as usize);
        let end = |header: &Elf64_Phdr| start(header).wrapping_add(header.p_memsz as usize);
        loaded()
            .any(|header| (start(header)..end(header)).contains(&address))
            .then_some(())?;
        Some((loaded().map(start).min()?, loaded().map(end).max()?))
    }

    /// The address of a function that it defines: of the version that is given to those who ask for none, if
    /// there are several. 0: it has none of this name.
    pub fn function(&self, name: &CStr) -> usize {
        let Some(tables) = self.tables() else {
            return 0;
        };
        let mut found = 0;
        tables.each_named(name, |symbol, hidden| {
            if symbol.st_shndx != 0 && symbol.st_info & 0xf == STT_FUNC {
                found = self.base.wrapping_add(symbol.st_value as usize);
                return !hidden;
            }
            false
        });
        found
    }

    fn tables(&self) -> Option<Tables> {
        let dynamic = self.headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC)?;
        let mut entry = self.base.wrapping_add(dynamic.p_vaddr as usize) as *const Dynamic;
        let mut tables = Tables::default();
        loop {
            // SAFETY: the dynamic section of a loaded library, which ends with a null entry.
            let Dynamic { tag, value } = unsafe { entry.read() };
            // The linker has made addresses of them, where the section may be written to.
            let address = if value < self.base {
                self.base.wrapping_add(value)
            } else {
                value
            };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => tables.symbols = address as *const Elf64_Sym,
                DT_STRTAB => tables.strings = address as *const c_char,
                DT_GNU_HASH => tables.gnu_hash = address as *const u32,
                DT_HASH => tables.hash = address as *const u32,
                DT_VERSYM => tables.versions = address as *const u16,
                _ => {}
            }
            // SAFETY: this was not the last entry.
            entry = unsafe { entry.add(1) };
        }
        (!tables.symbols.is_null() && !tables.strings.is_null()).then_some(tables)
    }
}

/// Where a library's tables lie; null: it has none of the kind.
struct Tables {
    symbols: *const Elf64_Sym,
    strings: *const c_char,
    gnu_hash: *const u32,
    hash: *const u32,
    versions: *const u16,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            symbols: std::ptr::null(),
            strings: std::ptr::null(),
            gnu_hash: std::ptr::null(),
            hash: std::ptr::null(),
            versions: std::ptr::null(),
        }
    }
}

impl Tables {
    /// Shows each symbol of a name, and whether its version is hidden, until `visit` gives true.
    fn each_named(&self, name: &CStr, mut visit: impl FnMut(&Elf64_Sym, bool) -> bool) {
        let mut visit_at = |index: usize| {
            // SAFETY: the hash tables count the symbols; names and versions of symbols lie in their tables.
            unsafe {
                let symbol = &*self.symbols.add(index);
                let is_named = CStr::from_ptr(self.strings.add(symbol.st_name as usize)) == name;
                let hidden = !self.versions.is_null() && *self.versions.add(index) & HIDDEN != 0;
                is_named && visit(symbol, hidden)
            }
        };
        if !self.gnu_hash.is_null() {
            self.in_gnu_hash(name, &mut visit_at);
        } else if !self.hash.is_null() {
            // SAFETY: the second word of this table is the number of symbols.
            let count = unsafe { *self.hash.add(1) };
            let _ = (0..count as usize).any(visit_at);
        }
    }

    /// Shows the index of each symbol that may have a name.
    fn in_gnu_hash(&self, name: &CStr, visit: &mut impl FnMut(usize) -> bool) {
        let step = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let hash = name.to_bytes().iter().fold(5381, step);
        // SAFETY: the table: four words, a filter of 64-bit words, the buckets, and the hashes of all symbols
        // from the first on that is in a bucket; the last of each bucket is odd.
        unsafe {
            let table = self.gnu_hash;
            let (buckets, first, filter) = (*table, *table.add(1), *table.add(2));
            if buckets == 0 {
                return;
            }
            let bucket = table.add(4 + 2 * filter as usize);
            let hashes = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            if index < first {
                return;
            }
            loop {
                let here = *hashes.add((index - first) as usize);
                if (here | 1) == (hash | 1) && visit(index as usize) || here & 1 != 0 {
                    return;
                }
                index += 1;
            }
        }
    }
}
