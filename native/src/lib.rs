//! What needs unsafe code: products of matrices, which [`gemm`] computes by pointers, and a setting of the allocator,
//! which is a function in C. No other crate has any.

mod matmul;

pub use matmul::{Matrices, products};

use libmimalloc_sys::{mi_option_set, mi_option_t};
use std::ffi::c_long;
use std::time::Duration;

/// `mi_option_purge_delay` in `mimalloc.h`, milliseconds. The Rust crate does not name it.
const PURGE_DELAY: mi_option_t = 15;

/// Gives freed pages back to the system after this time. An inner step frees what the next one allocates. Where it
/// takes longer than the usual second, the kernel clears all pages of the model's activations again for each step,
/// which is a tenth of its time.
pub fn keep_freed_pages(time: Duration) {
    let milliseconds = c_long::try_from(time.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: the function sets one number, of an option of its own list; any value is allowed, at any time.
    #[expect(unsafe_code, reason = "a function in C")]
    unsafe {
        mi_option_set(PURGE_DELAY, milliseconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a function in C")]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: as above, and it only reads.
        #[expect(unsafe_code, reason = "a function in C")]
        let now = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // No other option that stands near has this value at first.
        assert_eq!(now(), 1000);
        keep_freed_pages(Duration::from_secs(10));
        assert_eq!(now(), 10_000);
    }
}
