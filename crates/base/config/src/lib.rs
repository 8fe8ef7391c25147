//! How Loopwright is set: command line over environment over one file over defaults.
//!
//! Every option is declared once, in the table of [`Key`]: its name, what it takes, its default and
//! one line about it. From the table follow the variable of the environment (`LOOPWRIGHT_` and the
//! name in capitals), the key in the file, the messages of errors and the page of the docs.
//!
//! Nothing is passed over: a name that no option has is an error wherever it stands, and so is a
//! value that another place overrides. Errors name where the value is from, and what would be right there.
//!
//! `loopwright.toml` of the working directory is somebody's project: options in it that name paths count only once the
//! user has allowed the file ([`allow`]).
//!
//! ```
//! use loopwright_config::{Key, Origin, Settings, Sources};
//!
//! # fn main() -> Result<(), loopwright_config::ConfigError> {
//! let settings = Settings::load(&Sources {
//!     command_line: vec![("threads".into(), "3".into())],
//!     environment: vec![
//!         ("LOOPWRIGHT_THREADS".into(), "5".into()),
//!         ("LOOPWRIGHT_POOL_CAP".into(), "64MiB".into()),
//!     ],
//!     file: None,
//! })?;
//! assert_eq!(settings.threads().get(), 3);
//! assert_eq!(settings.pool_cap(), 64 << 20);
//! assert_eq!(
//!     *settings.origin(Key::PoolCap),
//!     Origin::Environment("LOOPWRIGHT_POOL_CAP".into())
//! );
//! assert_eq!(settings.device(), "auto");
//!
//! let slip = Settings::load(&Sources {
//!     command_line: vec![("thread".into(), "3".into())],
//!     ..Sources::default()
//! });
//! let error = slip.expect_err("there is no such option").to_string();
//! assert_eq!(error, "there is no option `thread`; did you mean `threads`?");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod environment;
mod error;
mod file;
mod key;
mod origin;
mod reference;
mod settings;
mod trust;
mod value;

pub use environment::OTHER_VARIABLES;
pub use error::ConfigError;
pub use key::{Key, KeyInfo};
pub use origin::{Origin, Place};
pub use reference::{keys_as_markdown, keys_as_text, variables_as_markdown};
pub use settings::{Settings, Sources};
pub use trust::{Decision, allow, deny};
pub use value::{Kind, Math, Scheduler, Value};
