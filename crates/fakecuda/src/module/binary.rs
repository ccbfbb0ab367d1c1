//! Binary images: device code in ELF (cubin), and the containers of several images (fatbin).

use super::image::{Entry, Image, Parameter, Variable};
use super::ptx;

const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
const FATBIN_MAGIC: [u8; 4] = 0xba55_ed50u32.to_le_bytes();

/// The header of a container: magic, version, its own length, length of what follows.
const FATBIN_HEADER: usize = 16;

/// The header of an ELF file, and that of a section in it.
const ELF_HEADER: usize = 64;
const ELF_SECTION: usize = 64;
const ELF_SYMBOL: usize = 24;

/// The length of a binary image; `None`: it is of no known kind.
///
/// # Safety
/// At least the image's first four bytes may be read, and all of it if they say what it is.
pub unsafe fn length(image: *const u8) -> Option<usize> {
    // SAFETY: the magic number may be read, and the headers after it when it is there. So may the table
    // of sections, which lies in the image.
    unsafe {
        let magic: [u8; 4] = image.cast::<[u8; 4]>().read();
        if magic == FATBIN_MAGIC {
            let header = std::slice::from_raw_parts(image, FATBIN_HEADER);
            return fatbin_length(header);
        }
        if magic != ELF_MAGIC {
            return None;
        }
        let header = std::slice::from_raw_parts(image, ELF_HEADER);
        let table = Table::of(header)?;
        let end = table.offset.checked_add(table.count * ELF_SECTION)?;
        let sections = std::slice::from_raw_parts(image, end);
        let ends = (0..table.count).filter_map(|index| {
            let section = Section::of(sections, &table, index)?;
            let bytes = if section.kind == Section::NO_BITS {
                0
            } else {
                section.bytes
            };
            section.offset.checked_add(bytes)
        });
        ends.chain([end, ELF_HEADER]).max()
    }
}

/// Reads a binary image; `None`: it is of no known kind.
pub fn read(bytes: &[u8]) -> Option<Image> {
    if bytes.starts_with(&FATBIN_MAGIC) {
        read_fatbin(bytes)
    } else if bytes.starts_with(&ELF_MAGIC) {
        read_elf(bytes)
    } else {
        None
    }
}

/// A container of images, each of which is read where it is needed.
pub fn pack<'a>(images: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    /// What a reader does not know it takes as opaque.
    const KIND_PTX: u16 = 1;
    const KIND_ELF: u16 = 2;
    let mut body = Vec::new();
    for image in images {
        let kind = if image.starts_with(&ELF_MAGIC) {
            KIND_ELF
        } else {
            KIND_PTX
        };
        let length = image.len().next_multiple_of(8);
        let mut header = [0; 64];
        header[..2].copy_from_slice(&kind.to_le_bytes());
        header[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        header[4..8].copy_from_slice(&64u32.to_le_bytes());
        header[8..16].copy_from_slice(&(length as u64).to_le_bytes());
        body.extend_from_slice(&header);
        body.extend_from_slice(image);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let mut container = FATBIN_MAGIC.to_vec();
    container.extend_from_slice(&1u16.to_le_bytes());
    container.extend_from_slice(&(FATBIN_HEADER as u16).to_le_bytes());
    container.extend_from_slice(&(body.len() as u64).to_le_bytes());
    container.extend_from_slice(&body);
    container
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..BYTES].copy_from_slice(bytes.get(at..at.checked_add(BYTES)?)?);
    Some(u64::from_le_bytes(number))
}

fn size<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    number::<BYTES>(bytes, at)?.try_into().ok()
}

fn fatbin_length(header: &[u8]) -> Option<usize> {
    size::<2>(header, 6)?.checked_add(size::<8>(header, 8)?)
}

/// All images of a container together. Those that are compressed are other forms of the same code, so
/// that nothing is missed without them if there is one that is not; those of another kind are opaque.
fn read_fatbin(bytes: &[u8]) -> Option<Image> {
    /// LZ4 or Zstandard.
    const COMPRESSED: u64 = 0x2000 | 0x8000;
    let end = fatbin_length(bytes)?.min(bytes.len());
    let mut at = size::<2>(bytes, 6)?;
    let mut image = Image::default();
    let mut has_compressed = false;
    let mut has_readable = false;
    while at < end {
        let start = at.checked_add(size::<4>(bytes, at + 4)?)?;
        let next = start.checked_add(size::<8>(bytes, at + 8)?)?;
        let content = bytes.get(start..next.min(end))?;
        if number::<8>(bytes, at + 40)? & COMPRESSED != 0 {
            has_compressed = true;
        } else if let Some(part) = read(content).or_else(|| ptx::read(content)) {
            has_readable = true;
            image.merge(part);
        } else {
            image.is_opaque = true;
        }
        if next <= at {
            break;
        }
        at = next;
    }
    image.is_opaque |= has_compressed && !has_readable;
    Some(image)
}

/// The table of sections of an ELF file.
struct Table {
    offset: usize,
    count: usize,
    names: usize,
}

impl Table {
    fn of(header: &[u8]) -> Option<Self> {
        Some(Self {
            offset: size::<8>(header, 40)?,
            count: size::<2>(header, 60)?,
            names: size::<2>(header, 62)?,
        })
    }
}

/// A section of an ELF file.
struct Section {
    name: usize,
    kind: u64,
    offset: usize,
    bytes: usize,
    link: usize,
}

impl Section {
    const NO_BITS: u64 = 8;
    const SYMBOLS: u64 = 2;

    fn of(bytes: &[u8], table: &Table, index: usize) -> Option<Self> {
        let at = table.offset.checked_add(index * ELF_SECTION)?;
        Some(Self {
            name: size::<4>(bytes, at)?,
            kind: number::<4>(bytes, at + 4)?,
            offset: size::<8>(bytes, at + 24)?,
            bytes: size::<8>(bytes, at + 32)?,
            link: size::<4>(bytes, at + 40)?,
        })
    }

    fn content<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.kind == Self::NO_BITS {
            return Some(&[]);
        }
        bytes.get(self.offset..self.offset.checked_add(self.bytes)?)
    }
}

/// The text at an offset of a table of texts.
fn text(texts: &[u8], at: usize) -> Option<String> {
    let texts = texts.get(at..)?;
    let length = texts.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&texts[..length]).into_owned())
}

/// Kernels are marked functions, variables are objects outside shared memory.
fn read_elf(bytes: &[u8]) -> Option<Image> {
    const FUNCTION: u64 = 2;
    const OBJECT: u64 = 1;
    const IS_KERNEL: u64 = 0x10;
    /// Newer devices keep the first kilobyte for themselves; code for them says so by this name.
    const RESERVED_SHARED: &str = ".nv.reservedSmem.offset0";
    const RESERVED_BYTES: u64 = 1024;
    const IS_MANAGED: u64 = 0x04;
    let table = Table::of(bytes)?;
    let section = |index| Section::of(bytes, &table, index);
    let names = section(table.names)?.content(bytes)?;
    let sections: Vec<_> = (0..table.count)
        .filter_map(|index| Some((text(names, section(index)?.name)?, section(index)?)))
        .collect();
    let mut image = Image::default();
    let mut has_reserved_shared = false;
    for (_, symbols) in sections
        .iter()
        .filter(|(_, one)| one.kind == Section::SYMBOLS)
    {
        let texts = section(symbols.link)?.content(bytes)?;
        for symbol in symbols.content(bytes)?.chunks_exact(ELF_SYMBOL) {
            let name = text(texts, size::<4>(symbol, 0)?)?;
            let kind = number::<1>(symbol, 4)? & 15;
            has_reserved_shared |= name == RESERVED_SHARED;
            let other = number::<1>(symbol, 5)?;
            let index = size::<2>(symbol, 6)?;
            let Some((place, of)) = sections.get(index).filter(|_| index > 0) else {
                continue;
            };
            if kind == FUNCTION && other & IS_KERNEL != 0 {
                image.entries.insert(name, Entry::default());
            } else if kind == OBJECT && !place.starts_with(".nv.shared") {
                let at = size::<8>(symbol, 8)?;
                let length = size::<8>(symbol, 16)?;
                let content = of.content(bytes)?;
                let end = at.saturating_add(length).min(content.len());
                let variable = Variable {
                    bytes: length as u64,
                    initial: content.get(at..end).unwrap_or(&[]).to_vec(),
                    is_managed: other & IS_MANAGED != 0,
                };
                image.variables.insert(name, variable);
            }
        }
    }
    for (name, section) in &sections {
        if let Some(kernel) = name.strip_prefix(".nv.info.") {
            if let Some(entry) = image.entries.get_mut(kernel) {
                describe(entry, section.content(bytes)?);
            }
        } else if let Some(kernel) = name.strip_prefix(".nv.shared.") {
            let reserved = if has_reserved_shared {
                RESERVED_BYTES
            } else {
                0
            };
            if let Some(entry) = image.entries.get_mut(kernel) {
                entry.shared_bytes = (section.bytes as u64).saturating_sub(reserved);
            }
        }
    }
    Some(image)
}

/// Reads what is told about a kernel: records of a format, an attribute, and a short value or the
/// length of a longer one.
fn describe(entry: &mut Entry, records: &[u8]) -> Option<()> {
    const LONG: u64 = 4;
    const PARAMETER: u64 = 0x17;
    const MOST_THREADS: u64 = 0x05;
    let mut parameters = Vec::new();
    let mut at = 0;
    while at + 4 <= records.len() {
        let (format, attribute) = (number::<1>(records, at)?, number::<1>(records, at + 1)?);
        let short = size::<2>(records, at + 2)?;
        at += 4;
        if format != LONG {
            continue;
        }
        let value = records.get(at..at.checked_add(short)?)?;
        at += short;
        match attribute {
            PARAMETER => {
                // Index, ordinal, offset, then a word whose upper 14 bits are the size.
                let ordinal = size::<2>(value, 4)?;
                let parameter = Parameter {
                    offset: size::<2>(value, 6)?,
                    bytes: (number::<4>(value, 8)? >> 18) as usize,
                };
                parameters.push((ordinal, parameter));
            }
            MOST_THREADS => {
                let sizes = [
                    number::<4>(value, 0)?,
                    number::<4>(value, 4)?,
                    number::<4>(value, 8)?,
                ];
                let mut sizes = sizes.into_iter();
                entry.most_threads = sizes.try_fold(1u64, u64::checked_mul);
            }
            _ => {}
        }
    }
    parameters.sort_by_key(|(ordinal, _)| *ordinal);
    entry.parameters = Some(
        parameters
            .into_iter()
            .map(|(_, parameter)| parameter)
            .collect(),
    );
    Some(())
}
