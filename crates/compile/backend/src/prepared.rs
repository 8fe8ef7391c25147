//! Calls whose arguments are known beforehand.

use crate::error::BackendError;

/// A kernel with most of its arguments, made by [`Executable::prepare`](crate::Executable::prepare).
pub trait PreparedCall: Send + Sync {
    /// Runs the kernel to its end.
    ///
    /// # Errors
    /// Where it failed.
    ///
    /// # Safety
    /// No other call of this is under way. The memory that it was prepared with, and `memory` where it
    /// takes that, is there, aligned for its elements and as long as was said; nobody else uses what the
    /// kernel writes or writes what it reads. `integers` are as many as it was prepared for.
    /// ```
    /// # use loopwright_backend::{BackendError, PreparedCall};
    /// fn call(prepared: &mut dyn PreparedCall) -> Result<(), BackendError> {
    ///     // SAFETY: who prepared it keeps its memory, and it takes neither integers nor memory of the call.
    ///     unsafe { prepared.call(&[], std::ptr::null()) }
    /// }
    /// ```
    /// ```compile_fail,E0133
    /// # use loopwright_backend::{BackendError, PreparedCall};
    /// fn call(prepared: &mut dyn PreparedCall) -> Result<(), BackendError> {
    ///     prepared.call(&[], std::ptr::null())
    /// }
    /// ```
    unsafe fn call(&self, integers: &[i64], memory: *const u8) -> Result<(), BackendError>;
}
