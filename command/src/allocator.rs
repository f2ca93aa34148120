//! The allocator of the command, and which pages it gets.

// burn allocates in every operation; the system's allocator gives big blocks back to the kernel
// each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Asks the system for pages of the usual size only. The allocator asks for huge ones, and a page
/// of 2 MB of which a few kB are used counts as a whole: 38 MB more a daemon with the default model,
/// at the same inner steps per second (measured, x86-64).
pub(crate) fn small_pages() {
    #[cfg(target_os = "linux")]
    if rustix::thread::disable_transparent_huge_pages(true).is_err() {
        // An old kernel or a sandbox: more memory is used, nothing else.
    }
}
