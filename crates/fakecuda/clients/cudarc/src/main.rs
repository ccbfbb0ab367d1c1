//! What a program does through cudarc's safe layer, with contents checked.

mod stand_in;

use cudarc::driver::{
    CudaContext, DriverError, LaunchConfig, PushKernelArg,
    sys::{CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode},
};
use cudarc::nvrtc::Ptx;
use std::error::Error;
use std::sync::Arc;

const COUNT: usize = 10_000;

/// There and back, from device to device, and on a view.
fn copies(context: &Arc<CudaContext>) -> Result<(), DriverError> {
    let stream = context.default_stream();
    let host: Vec<u32> = (0..COUNT as u32).collect();
    let first = stream.clone_htod(&host)?;
    let mut second = stream.alloc_zeros::<u32>(COUNT)?;
    assert!(stream.clone_dtoh(&second)?.iter().all(|&word| word == 0));
    stream.memcpy_dtod(&first, &mut second)?;
    assert_eq!(stream.clone_dtoh(&second)?, host);
    let part = second.slice(100..200);
    assert_eq!(stream.clone_dtoh(&part)?, host[100..200]);
    stream.memset_zeros(&mut second)?;
    assert_eq!(stream.clone_dtoh(&second)?, vec![0; COUNT]);
    assert_eq!(stream.clone_dtoh(&first.try_clone()?)?, host);
    Ok(())
}

/// Work of one stream that waits for another's, with the time between two events.
fn streams(context: &Arc<CudaContext>) -> Result<(), DriverError> {
    let (one, two) = (context.new_stream()?, context.new_stream()?);
    let mut pinned = unsafe { context.alloc_pinned::<u8>(COUNT)? };
    pinned.as_mut_slice()?.fill(7);
    let timing = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
    let start = one.record_event(timing)?;
    let block = one.clone_htod(&pinned)?;
    let end = one.record_event(timing)?;
    two.wait(&end)?;
    assert_eq!(two.clone_dtoh(&block)?, vec![7; COUNT]);
    two.synchronize()?;
    assert!(end.is_complete());
    assert!(start.elapsed_ms(&end)? >= 0.0);
    let third = two.fork()?;
    assert_eq!(third.clone_dtoh(&block)?, vec![7; COUNT]);
    two.join(&third)?;
    context.synchronize()
}

/// Launches of the kernel, and of a graph of them.
fn kernels(context: &Arc<CudaContext>) -> Result<(), DriverError> {
    // Waits for events from before a capture do not belong in it.
    // SAFETY: what is made here is used in one stream.
    unsafe { context.disable_event_tracking() };
    let module = context.load_module(Ptx::from_src(include_str!("../../fill.ptx")))?;
    let fill = module.load_function("fill")?;
    let missing = module.load_function("no_such_kernel").map(drop);
    assert_eq!(missing, Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)));
    let stream = context.new_stream()?;
    let mut block = stream.alloc_zeros::<u8>(COUNT)?;
    let config = LaunchConfig::for_num_elems(COUNT as u32);
    for value in 1..4u32 {
        let count = COUNT as u32 - value;
        let mut launch = stream.launch_builder(&fill);
        launch.arg(&mut block).arg(&count).arg(&value);
        // SAFETY: the arguments are the kernel's.
        unsafe { launch.launch(config)? };
    }
    let bytes = stream.clone_dtoh(&block)?;
    assert_eq!(bytes[..COUNT - 3], vec![3; COUNT - 3]);
    assert_eq!(bytes[COUNT - 3..], [2, 1, 0]);
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    stream.memset_zeros(&mut block)?;
    let (count, value) = (100u32, 9u32);
    let mut launch = stream.launch_builder(&fill);
    launch.arg(&mut block).arg(&count).arg(&value);
    // SAFETY: the arguments are the kernel's.
    unsafe { launch.launch(config)? };
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags)?.expect("something was captured");
    for _ in 0..2 {
        graph.launch()?;
        let bytes = stream.clone_dtoh(&block)?;
        assert_eq!(bytes[..100], [9; 100]);
        assert!(bytes[100..].iter().all(|&byte| byte == 0));
    }
    // SAFETY: as above.
    unsafe { context.enable_event_tracking() };
    Ok(())
}

/// One pointer for host and device.
fn unified(context: &Arc<CudaContext>) -> Result<(), DriverError> {
    // SAFETY: it is written before it is read.
    let mut block = unsafe { context.alloc_unified::<u32>(COUNT, true)? };
    block.as_mut_slice()?.fill(5);
    let stream = context.default_stream();
    assert_eq!(stream.clone_dtoh(&block)?, vec![5; COUNT]);
    Ok(())
}

/// More than there is, is refused, and what was taken comes back.
fn limits(context: &Arc<CudaContext>) -> Result<(), DriverError> {
    let stream = context.default_stream();
    let (_, total) = context.mem_get_info()?;
    // SAFETY: nothing is made.
    let refused = unsafe { stream.alloc::<u8>(2 * total) }.map(drop);
    assert_eq!(
        refused,
        Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY))
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    stand_in::register();
    println!("{}, {:?}", context.name()?, context.compute_capability()?);
    copies(&context)?;
    streams(&context)?;
    kernels(&context)?;
    unified(&context)?;
    limits(&context)?;
    context.check_err()?;
    println!("cudarc: ok");
    Ok(())
}
