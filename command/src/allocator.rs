//! The command's memory allocator, and the size of its pages.

// burn allocates in every operation, and the system's allocator returns large blocks to the kernel each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests huge pages, as the allocator does by default, or none. One of 2 MB counts as a whole even if a few kB are
/// used: 38 MB more per daemon with the default model, at the same inner steps per second (measured on x86-64). A
/// simulator of thousands of machines reads all over its memory: they save between nothing and a fifth of its time.
pub(crate) fn huge_pages(wanted: bool) {
    // On an old kernel or in a sandbox, the only effect is more memory, or more time.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!wanted);
    #[cfg(not(target_os = "linux"))]
    let _ = wanted;
}
