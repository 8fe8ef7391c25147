//! Files as arrays.

pub(crate) mod idx;
mod images;
mod npy;
mod table;

pub use idx::read_idx;
pub use images::{ImageFolder, read_images};
pub use npy::{read_npy, read_npy_as, write_npy};
pub use table::{Column, ColumnType, Table, TableOptions};
