//! The command's memory allocator, and the size of its pages.

// burn allocates in every operation, and the system's allocator returns large blocks to the kernel
// each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests huge pages, as the allocator does by default, or pages of the usual size only. A page of 2 MB counts as a
/// whole even if only a few kB are used. That costs 38 MB more per daemon with the default model, at the same inner
/// steps per second (measured on x86-64). A simulator of thousands of machines reads all over its memory, where huge
/// pages save between nothing and a fifth of the time.
pub(crate) fn huge_pages(wanted: bool) {
    #[cfg(target_os = "linux")]
    if rustix::thread::disable_transparent_huge_pages(!wanted).is_err() {
        // On an old kernel or in a sandbox, the only effect is more memory, or more time.
    }
    #[cfg(not(target_os = "linux"))]
    let _ = wanted;
}
