//! Why a plug-in is not there.

use crate::abi::LW_ABI_VERSION;
use std::path::{Path, PathBuf};

/// Why a plug-in was not loaded. Every message names the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PluginError {
    /// The file cannot be opened.
    #[error("cannot open the plug-in {}: {reason}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Somebody else could have put the file there, or changed it.
    #[error("the plug-in {} is not loaded: {reason}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Who could, and what would help.
        reason: String,
    },
    /// The system does not load it.
    #[error("the plug-in {} cannot be loaded as a shared library: {reason}", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// A shared library that is something else.
    #[error(
        "{} is no plug-in: it is a shared library without the symbol `loopwright_plugin`",
        path.display()
    )]
    NoSymbol {
        /// The file.
        path: PathBuf,
    },
    /// It gives no table.
    #[error(
        "the plug-in {} does not go with ABI version {LW_ABI_VERSION}, which this host has: it gives \
         no table",
        path.display()
    )]
    NoTable {
        /// The file.
        path: PathBuf,
    },
    /// It was built with a header of another version.
    #[error(
        "the plug-in {} has ABI version {found}, and this host has {LW_ABI_VERSION}; build it with \
         this host's header",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it says.
        found: u32,
    },
    /// What it says of itself cannot be.
    #[error("the plug-in {} is refused: {reason}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What cannot be.
        reason: String,
    },
    /// Its name is another backend's.
    #[error("the plug-in {} is called `{name}`, and so is {other}", path.display())]
    NameTaken {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// Who has it.
        other: String,
    },
    /// A directory of plug-ins cannot be listed.
    #[error("cannot list the plug-ins in {}: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl PluginError {
    /// The file or directory it is about.
    pub fn path(&self) -> &Path {
        match self {
            PluginError::Open { path, .. }
            | PluginError::Untrusted { path, .. }
            | PluginError::Library { path, .. }
            | PluginError::NoSymbol { path }
            | PluginError::NoTable { path }
            | PluginError::Version { path, .. }
            | PluginError::Table { path, .. }
            | PluginError::NameTaken { path, .. }
            | PluginError::Directory { path, .. } => path,
        }
    }
}
