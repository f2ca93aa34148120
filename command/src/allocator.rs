//! The command's memory allocator, the size of its pages, and how long it keeps them.

use std::time::Duration;

// burn allocates in every operation, and the system's allocator returns large blocks to the kernel
// each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long freed pages are kept: longer than most inner steps take.
const FREED_PAGES: Duration = Duration::from_secs(10);

/// Keeps freed pages for the next inner step, and requests pages of the usual size only. By default the allocator requests huge pages, and a page
/// of 2 MB counts as a whole even if only a few kB are used. That costs 38 MB more per daemon with
/// the default model, at the same inner steps per second (measured on x86-64).
pub(crate) fn set_up() {
    murmurate_native::keep_freed_pages(FREED_PAGES);
    #[cfg(target_os = "linux")]
    if rustix::thread::disable_transparent_huge_pages(true).is_err() {
        // On an old kernel or in a sandbox, the only effect is more memory.
    }
}
