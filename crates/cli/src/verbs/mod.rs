//! One file for each verb.

pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod run;
