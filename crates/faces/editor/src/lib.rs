//! The loop-tree editor in the terminal.
//!
//! It shows the loops of a program with what each of them costs, changes them with a key, shows the code that
//! comes of it, and measures it. A session is the front to back of it:
//!
//! - `editor`: the state, which knows no terminal. Keys and the mouse become actions, actions become
//!   mutations of the plan, and old plans are kept: that is undo.
//! - `keys`: one table of what every key does, from which the help page and the book's table come.
//! - `view`: draws the state.
//! - `measure`: a thread that compiles and measures, so that drawing never waits.
//! - `terminal`: takes the terminal over and gives it back, whatever happens.
//!
//! ```
//! // The table of keys that the book shows.
//! let keys = loopwright_editor::keys_as_markdown();
//! assert!(keys.contains("| `s` | split the loop"));
//!
//! // Without a terminal there is no session. (A test may have one.)
//! if let Err(error) = loopwright_editor::Seat::take() {
//!     assert!(error.to_string().contains("needs a terminal"));
//! }
//! ```

// The tests start a pseudo-terminal.
#![cfg_attr(not(test), forbid(unsafe_code))]

mod cost;
mod editor;
mod error;
mod files;
mod history;
mod keys;
mod line;
mod measure;
mod menu;
mod pane;
mod prompt;
#[cfg(all(test, unix))]
#[path = "../../cli/tests/pty/mod.rs"]
mod pty;
mod scene;
mod session;
mod signals;
mod terminal;
#[cfg(test)]
mod testing;
mod units;
mod view;

pub use error::EditorError;
pub use keys::keys_as_markdown;
pub use session::{Seat, Session};
