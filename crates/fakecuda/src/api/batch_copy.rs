//! Batches of copies, and copies with attributes.

use crate::abi::copy::{
    BatchCopy, CopyAttributes, OPERAND_ARRAY, OPERAND_POINTER, ORDER_ANY, ORDER_DURING_CALL,
    ORDER_STREAM, Operand,
};
use crate::driver;
use crate::entry::put_if;
use crate::exec::LEGACY;
use crate::state::{State, lock};
use crate::status::{Code, Result};
use crate::thread::{NullStream, null_stream};
use crate::transfer::shape::{Extent, Layout};
use crate::transfer::side::Side;
use crate::transfer::{Copy, Mode, enqueue};
use std::slice;

/// One copy of a batch.
struct Asked {
    from: Side,
    to: Side,
    extent: Extent,
    source_order: u32,
}

/// Makes the copies of a batch on a stream, which may not be the legacy default one.
fn copy_batch(asked: &[Asked], stream: u64) -> std::result::Result<(), (Code, usize)> {
    if stream == LEGACY || (stream == 0 && null_stream() == NullStream::Legacy) {
        return Err((Code::INVALID_VALUE, usize::MAX));
    }
    copy_all(asked, stream)
}

/// Makes copies on a stream. Nothing is copied if one of them cannot be, whose number is then told.
fn copy_all(asked: &[Asked], stream: u64) -> std::result::Result<(), (Code, usize)> {
    let unknown = |code| (code, usize::MAX);
    let mut guard = lock();
    let context = guard.current().map_err(unknown)?;
    let stream = guard.stream(stream).map_err(unknown)?;
    let copies: Vec<_> = asked
        .iter()
        .enumerate()
        .map(|(index, asked)| {
            if !matches!(asked.source_order, ORDER_STREAM..=ORDER_ANY) || asked.extent.is_empty() {
                return Err((Code::INVALID_VALUE, index));
            }
            let copy = Copy::new(&guard, context, asked.from, asked.to, asked.extent);
            Ok((copy.map_err(|code| (code, index))?, asked.source_order))
        })
        .collect::<std::result::Result<_, _>>()?;
    drop(guard);
    for (copy, source_order) in copies {
        // A source that may be gone after the call is read in it, which is what waiting does, too.
        let is_taken = source_order == ORDER_DURING_CALL;
        let copy = copy.map(|copy| if is_taken { copy.taking_source() } else { copy });
        enqueue(lock(), stream, copy, Mode::Asynchronous).map_err(unknown)?;
    }
    Ok(())
}

/// The copies of a plain batch.
///
/// # Safety
/// The arrays are as long as the counts say.
unsafe fn rows(
    (to, from, sizes): (*const u64, *const u64, *const usize),
    count: usize,
    (attributes, firsts): (*const CopyAttributes, *const usize),
    attribute_count: usize,
) -> Result<Vec<Asked>> {
    let is_missing = to.is_null() || from.is_null() || sizes.is_null();
    let is_unsaid = attributes.is_null() || firsts.is_null();
    if count == 0 || is_missing || attribute_count == 0 || is_unsaid || attribute_count > count {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    let (to, from, sizes, attributes, firsts) = unsafe {
        (
            slice::from_raw_parts(to, count),
            slice::from_raw_parts(from, count),
            slice::from_raw_parts(sizes, count),
            slice::from_raw_parts(attributes, attribute_count),
            slice::from_raw_parts(firsts, attribute_count),
        )
    };
    let is_rising = firsts.windows(2).all(|pair| pair[0] < pair[1]);
    if firsts[0] != 0 || !is_rising || firsts[attribute_count - 1] >= count {
        return Err(Code::INVALID_VALUE);
    }
    let asked = (0..count).map(|index| {
        let attribute = firsts.partition_point(|&first| first <= index) - 1;
        Asked {
            from: Side::unified(from[index]),
            to: Side::unified(to[index]),
            extent: Extent::row(sizes[index]),
            source_order: attributes[attribute].source_order,
        }
    });
    Ok(asked.collect())
}

/// Bytes of an element of an array operand.
fn element_bytes(state: &State, operand: &Operand) -> Result<Option<usize>> {
    match operand.kind {
        OPERAND_POINTER => Ok(None),
        OPERAND_ARRAY => Ok(Some(state.array(operand.words[0])?.element_bytes())),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// A side of a copy in elements of a size.
fn side(operand: &Operand, element: usize, extent: Extent) -> Result<Side> {
    let [first, second, third, fourth] = operand.words.map(|word| word as usize);
    if operand.kind == OPERAND_ARRAY {
        return Ok(Side::Array {
            array: operand.words[0],
            x_bytes: second.checked_mul(element).ok_or(Code::INVALID_VALUE)?,
            y: third,
            z: fourth,
        });
    }
    let pitch = second.checked_mul(element).ok_or(Code::INVALID_VALUE)?;
    let pitch = if pitch == 0 { extent.width } else { pitch };
    let height = if third == 0 { extent.height } else { third };
    let slice = pitch.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
    if pitch < extent.width || height < extent.height {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Side::Unified(Layout {
        address: first as u64,
        pitch,
        slice,
    }))
}

/// A copy of a batch of shaped ones.
fn shaped(state: &State, copy: &BatchCopy) -> Result<Asked> {
    let from = element_bytes(state, &copy.source)?;
    let to = element_bytes(state, &copy.destination)?;
    if from.zip(to).is_some_and(|(from, to)| from != to) {
        return Err(Code::INVALID_VALUE);
    }
    let element = from.or(to).unwrap_or(1);
    let [width, height, depth] = copy.extent;
    let width = width.checked_mul(element).ok_or(Code::INVALID_VALUE)?;
    let extent = Extent {
        width,
        height,
        depth,
    };
    Ok(Asked {
        from: side(&copy.source, element, extent)?,
        to: side(&copy.destination, element, extent)?,
        extent,
        source_order: copy.source_order,
    })
}

/// The copies of a batch of shaped ones.
///
/// # Safety
/// The array is as long as the count says.
unsafe fn all_shaped(
    copies: *const BatchCopy,
    count: usize,
    flags: u64,
) -> std::result::Result<Vec<Asked>, (Code, usize)> {
    if copies.is_null() || count == 0 || flags != 0 {
        return Err((Code::INVALID_VALUE, usize::MAX));
    }
    // SAFETY: the caller promises it.
    let copies = unsafe { slice::from_raw_parts(copies, count) };
    let state = lock();
    let asked = copies.iter().enumerate();
    asked
        .map(|(index, copy)| shaped(&state, copy).map_err(|code| (code, index)))
        .collect()
}

/// Ends a call that tells which copy failed.
///
/// # Safety
/// The place for the number is null or may be written to.
unsafe fn told(outcome: std::result::Result<(), (Code, usize)>, failed: *mut usize) -> Result {
    outcome.map_err(|(code, index)| {
        // SAFETY: the caller promises it.
        unsafe { put_if(failed, index) };
        code
    })
}

driver! {
    fn cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz (
        to: *const u64, from: *const u64, sizes: *const usize, count: usize,
        attributes: *const CopyAttributes, firsts: *const usize, attribute_count: usize,
        failed: *mut usize, stream: u64,
    ) {
        let asked = rows((to, from, sizes), count, (attributes, firsts), attribute_count)
            .map_err(|code| (code, usize::MAX));
        told(asked.and_then(|asked| copy_batch(&asked, stream)), failed)
    }
    fn cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz (
        to: *const u64, from: *const u64, sizes: *const usize, count: usize,
        attributes: *const CopyAttributes, firsts: *const usize, attribute_count: usize,
        stream: u64,
    ) {
        let asked = rows((to, from, sizes), count, (attributes, firsts), attribute_count)?;
        copy_batch(&asked, stream).map_err(|(code, _)| code)
    }
    fn cuMemcpy3DBatchAsync | cuMemcpy3DBatchAsync_ptsz (
        count: usize, copies: *const BatchCopy, failed: *mut usize, flags: u64, stream: u64,
    ) {
        let asked = all_shaped(copies, count, flags);
        told(asked.and_then(|asked| copy_batch(&asked, stream)), failed)
    }
    fn cuMemcpy3DBatchAsync_v2 | cuMemcpy3DBatchAsync_v2_ptsz (
        count: usize, copies: *const BatchCopy, flags: u64, stream: u64,
    ) {
        let asked = all_shaped(copies, count, flags);
        asked.and_then(|asked| copy_batch(&asked, stream)).map_err(|(code, _)| code)
    }
    fn cuMemcpyWithAttributesAsync | cuMemcpyWithAttributesAsync_ptsz (
        to: u64, from: u64, bytes: usize, attributes: *const CopyAttributes, stream: u64,
    ) {
        let asked = rows((&raw const to, &raw const from, &raw const bytes), 1, (attributes, &0), 1)?;
        copy_all(&asked, stream).map_err(|(code, _)| code)
    }
    fn cuMemcpy3DWithAttributesAsync | cuMemcpy3DWithAttributesAsync_ptsz (
        copy: *const BatchCopy, flags: u64, stream: u64,
    ) {
        let asked = all_shaped(copy, 1, flags);
        asked.and_then(|asked| copy_all(&asked, stream)).map_err(|(code, _)| code)
    }
}
