//! Parameter servers that apply contributions as they arrive.

mod late_gradients;
