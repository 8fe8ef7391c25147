//! What OCANNL's array layer does, line by line of the list of behaviours that this runtime has to show,
//! on every backend under both schedulers. Lines of a test's name are those of the list.
//!
//! Line 40, the configuration, is tested where it is made: `the_strongest_source_wins_for_every_option` in
//! crates/base/config/tests/precedence.rs and `an_unknown_name_is_an_error_everywhere` in
//! crates/base/config/tests/errors.rs. Files of line 38 are written by `dump --out`, tested in crates/faces/cli/tests.
//! That kernels share no value across a write (line 25) also has filetests of its own: `cse_writes.lwk` and
//! `cse_alias.lwk` in crates/ir/kernel/tests/filetests/passes.

#[macro_use]
mod support;

mod devices;
mod inspecting;
mod linking;
mod memory;
mod numbers;
mod timing;
mod transfers;
