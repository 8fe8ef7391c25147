//! One file for each verb.

pub(crate) mod allow;
pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod check;
mod check_targets;
pub(crate) mod config;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod dump;
mod dump_files;
mod dump_plan;
pub(crate) mod edit;
pub(crate) mod run;
pub(crate) mod train;
pub(crate) mod tune;
