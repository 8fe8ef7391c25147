//! What OCANNL's array layer does, line by line of the list of behaviours that this runtime has to show,
//! on every backend under both schedulers. Lines of a test's name are those of the list.

#[macro_use]
mod support;

mod devices;
mod inspecting;
mod linking;
mod memory;
mod timing;
mod transfers;
